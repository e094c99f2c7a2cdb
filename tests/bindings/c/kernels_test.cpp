// Kernels of the caller's own through the C interface: described, tuned, verified and launched on the host device.
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "tests/bindings/c/c_fixture.h"

namespace hone::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAxpy = R"(extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  for (int u = 0; u < unroll; ++u) {
    const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
  }
})";

/// Sums of neighbours of rows that have one element more than there are results.
constexpr const char* kPairs = R"(extern "C" __global__ void pairs(const int* in, int* out, int width, int height) {
  const int x = blockIdx.x * block_x + threadIdx.x, y = blockIdx.y * block_y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = in[y * (width + 1) + x] + in[y * (width + 1) + x + 1];
})";

/// A description, and the kernel that it becomes.
class Described {
 public:
  Described() { EXPECT_EQ(hone_kernel_spec_create(&spec_), HONE_OK); }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  ~Described() {
    hone_kernel_destroy(kernel_);
    hone_kernel_spec_destroy(spec_);
  }

  Described& field(const char* name, const char* value) {
    EXPECT_EQ(hone_kernel_spec_add(spec_, name, value), HONE_OK) << hone_last_error();
    return *this;
  }
  Described& parameter(const char* name, const std::vector<const char*>& values) {
    EXPECT_EQ(hone_kernel_spec_add_parameter(spec_, name, values.data(), static_cast<std::int32_t>(values.size())),
              HONE_OK)
        << hone_last_error();
    return *this;
  }
  Described& argument(std::int32_t kind, const char* name, const char* dtype, const char* elements = nullptr,
                      const char* reference_dtype = nullptr) {
    hone_kernel_argument argument;
    EXPECT_EQ(hone_kernel_argument_init(&argument, sizeof argument), HONE_OK);
    argument.kind = kind;
    argument.name = name;
    argument.dtype = hone_dtype(dtype);
    argument.elements = elements;
    if (reference_dtype != nullptr) argument.reference_dtype = hone_dtype(reference_dtype);
    EXPECT_EQ(hone_kernel_spec_add_argument(spec_, &argument), HONE_OK) << hone_last_error();
    return *this;
  }
  Described& reference(hone_kernel_reference function, void* context = nullptr) {
    EXPECT_EQ(hone_kernel_spec_set_reference(spec_, function, context), HONE_OK) << hone_last_error();
    return *this;
  }

  hone_kernel_spec* spec() { return spec_; }
  const hone_kernel* kernel() {
    if (kernel_ == nullptr) {
      EXPECT_EQ(hone_kernel_create(spec_, &kernel_), HONE_OK) << hone_last_error();
    }
    return kernel_;
  }

 private:
  hone_kernel_spec* spec_ = nullptr;
  hone_kernel* kernel_ = nullptr;
};

void describe_axpy(Described& axpy, const char* reference_dtype = nullptr) {
  axpy.field("source", kAxpy).field("elements_per_thread", "unroll");
  axpy.parameter("block_threads", {"64", "128"}).parameter("unroll", {"1", "2"});
  axpy.argument(HONE_ARGUMENT_SCALAR, "a", "f32").argument(HONE_ARGUMENT_IN, "x", "f32", nullptr, reference_dtype);
  axpy.argument(HONE_ARGUMENT_INOUT, "y", "f32", nullptr, reference_dtype).argument(HONE_ARGUMENT_EXTENT, "n", "i32");
}

/// a · x + y in double, which counts its calls.
std::int32_t axpy_in_double(void* context, const hone_kernel_operand* operands, std::int32_t count,
                            const std::int64_t* extents, std::int32_t extent_count) {
  ++*static_cast<int*>(context);
  const auto n = static_cast<std::int64_t>(operands[3].number);
  if (count != 4 || extent_count != 1 || operands[1].elements != n || extents[0] != n) return 1;
  const auto* const x = static_cast<const double*>(operands[1].data);
  auto* const y = static_cast<double*>(operands[2].data);
  for (std::int64_t i = 0; i < n; ++i) y[i] += operands[0].number * x[i];
  return 0;
}

/// The tuning of a call of `n` elements; null, and a last error, where it failed.
json tuned(hone_session* session, const hone_kernel* kernel, std::int64_t n) {
  hone_problem* problem = nullptr;
  EXPECT_EQ(hone_problem_kernel(kernel, &n, 1, 16, &problem), HONE_OK) << hone_last_error();
  char* text = nullptr;
  const hone_status status = hone_tune(session, problem, 2000, &text);
  hone_problem_destroy(problem);
  if (status != HONE_OK) return nullptr;
  json found = json::parse(text);
  hone_free(text);
  return found;
}

TEST_F(CApi, AKernelOfOnesOwnIsLaunchedAndTuned) {
  int references = 0;
  Described axpy;
  describe_axpy(axpy, "f64");
  axpy.reference(axpy_in_double, &references);
  const std::vector<float> x = counting(100);
  std::vector<float> y(100, 0.5f);
  void* const arrays[] = {const_cast<float*>(x.data()), y.data()};
  const double a = 2;
  const std::int64_t n = 100;
  hone_choice choice;
  ASSERT_EQ(hone_choice_init(&choice, sizeof choice), HONE_OK);
  ASSERT_EQ(hone_kernel_launch(session_, axpy.kernel(), arrays, 2, &a, 1, &n, 1, nullptr, &choice), HONE_OK)
      << hone_last_error();
  EXPECT_EQ(choice.source, HONE_FROM_HEURISTIC);
  EXPECT_EQ(y[0], 2.5f);
  EXPECT_EQ(y[99], 200.5f);

  const json tuning = tuned(session_, axpy.kernel(), 100);
  ASSERT_TRUE(tuning["winner"].is_number()) << hone_last_error();
  EXPECT_GT(references, 0);
  EXPECT_THAT(tuning["problem"].get<std::string>(), AllOf(HasSubstr("axpy"), HasSubstr("n=100")));
  ASSERT_EQ(hone_kernel_launch(session_, axpy.kernel(), arrays, 2, &a, 1, &n, 1, nullptr, &choice), HONE_OK);
  EXPECT_EQ(choice.source, HONE_FROM_MEMORY);
  EXPECT_EQ(choice.tuned, 1);
  EXPECT_EQ(y[99], 400.5f);
}

TEST_F(CApi, AReferenceThatFailsEndsTheTuning) {
  Described axpy;
  describe_axpy(axpy);
  axpy.reference([](void*, const hone_kernel_operand*, std::int32_t, const std::int64_t*,
                    std::int32_t) -> std::int32_t { return 42; });
  EXPECT_TRUE(tuned(session_, axpy.kernel(), 1000).is_null());
  EXPECT_THAT(hone_last_error(), AllOf(HasSubstr("reference"), HasSubstr("42")));
  char* text = nullptr;
  ASSERT_EQ(hone_session_counters(session_, &text), HONE_OK);
  EXPECT_EQ(json::parse(taken(text))["tunings"], 0);
}

TEST_F(CApi, AKernelThatItsReferenceContradictsHasNoWinner) {
  Described axpy;
  describe_axpy(axpy);
  axpy.reference(
      [](void*, const hone_kernel_operand* operands, std::int32_t, const std::int64_t*, std::int32_t) -> std::int32_t {
        static_cast<float*>(operands[2].data)[0] = 12345;
        return 0;
      });
  const json tuning = tuned(session_, axpy.kernel(), 1000);
  EXPECT_TRUE(tuning["winner"].is_null());
  EXPECT_THAT(tuning["trials"][0]["reason"].get<std::string>(), AllOf(HasSubstr("y[0]"), HasSubstr("12345")));
}

TEST_F(CApi, APlainKernelIsAReference) {
  Described axpy;
  describe_axpy(axpy);
  axpy.field("reference", R"(__global__ void plain(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
})");
  EXPECT_TRUE(tuned(session_, axpy.kernel(), 1000)["winner"].is_number()) << hone_last_error();
}

TEST_F(CApi, AKernelHasSeveralExtentsAndArraysOfOtherLengths) {
  Described pairs;
  pairs.field("source", kPairs).field("extents", "width").field("extents", "height");
  pairs.field("block", "block_x").field("block", "block_y").field("where", "block_x * block_y <= 64");
  pairs.parameter("block_x", {"32", "16"}).parameter("block_y", {"2", "4"});
  pairs.argument(HONE_ARGUMENT_IN, "in", "i32", "(width + 1) * height").argument(HONE_ARGUMENT_OUT, "out", "i32");
  pairs.argument(HONE_ARGUMENT_EXTENT, "width", "i32").argument(HONE_ARGUMENT_EXTENT, "height", "i32");
  const std::int64_t extents[] = {2, 3};
  std::int64_t elements[2] = {};
  ASSERT_EQ(hone_kernel_elements(pairs.kernel(), extents, 2, elements, 2), HONE_OK) << hone_last_error();
  EXPECT_THAT(elements, ElementsAre(9, 6));
  const std::vector<int> in = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<int> out(6);
  void* const arrays[] = {const_cast<int*>(in.data()), out.data()};
  ASSERT_EQ(hone_kernel_launch(session_, pairs.kernel(), arrays, 2, nullptr, 0, extents, 2, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_THAT(out, ElementsAre(3, 5, 9, 11, 15, 17));

  const std::int64_t nothing[] = {0, 3};
  ASSERT_EQ(hone_kernel_launch(session_, pairs.kernel(), arrays, 2, nullptr, 0, nothing, 2, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_THAT(out, ElementsAre(3, 5, 9, 11, 15, 17));
  EXPECT_EQ(hone_kernel_launch(session_, pairs.kernel(), arrays, 2, nullptr, 0, extents, 1, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("width × height"));
}

TEST_F(CApi, NumbersThatAnIntegerCannotHoldAreRefused) {
  Described shift;
  shift.field("source", R"(extern "C" __global__ void shift(unsigned char by, int* x, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) x[i] += by;
})");
  shift.parameter("block_threads", {"32"}).argument(HONE_ARGUMENT_SCALAR, "by", "u8");
  shift.argument(HONE_ARGUMENT_INOUT, "x", "i32").argument(HONE_ARGUMENT_EXTENT, "n", "i32");
  int x = 1;
  void* const array = &x;
  const std::int64_t n = 1;
  for (const double bad : {-1.0, 256.0, 0.5, std::nan("")}) {
    EXPECT_EQ(hone_kernel_launch(session_, shift.kernel(), &array, 1, &bad, 1, &n, 1, nullptr, nullptr),
              HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_last_error(), AllOf(HasSubstr("by"), HasSubstr("u8")));
  }
  const double most = 255;
  ASSERT_EQ(hone_kernel_launch(session_, shift.kernel(), &array, 1, &most, 1, &n, 1, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_EQ(x, 256);
}

TEST_F(CApi, IntegersThatADoubleMayHaveRoundedAreRefused) {
  Described shift;
  shift.field("source", R"(extern "C" __global__ void shift(long long by, long long* x, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) x[i] += by;
})");
  shift.parameter("block_threads", {"32"}).argument(HONE_ARGUMENT_SCALAR, "by", "i64");
  shift.argument(HONE_ARGUMENT_INOUT, "x", "i64").argument(HONE_ARGUMENT_EXTENT, "n", "i32");
  std::int64_t x = 0;
  void* const array = &x;
  const std::int64_t n = 1;
  for (const double bad : {0x1p53, -0x1p53, 0x1p63, 1e300}) {
    EXPECT_EQ(hone_kernel_launch(session_, shift.kernel(), &array, 1, &bad, 1, &n, 1, nullptr, nullptr),
              HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_last_error(), AllOf(HasSubstr("by"), HasSubstr("i64"), HasSubstr("9007199254740991")));
  }
  const double most = 0x1p53 - 1;
  ASSERT_EQ(hone_kernel_launch(session_, shift.kernel(), &array, 1, &most, 1, &n, 1, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_EQ(x, 9007199254740991);
}

TEST_F(CApi, DescriptionsThatCannotBeRightAreRefused) {
  Described axpy;
  EXPECT_EQ(hone_kernel_spec_add(axpy.spec(), "sources", ""), HONE_NOT_FOUND);
  EXPECT_THAT(hone_last_error(), AllOf(HasSubstr("'sources'"), HasSubstr("elements_per_thread")));
  for (const auto& [field, value] : {std::pair{"alignment", "3"},
                                     {"alignment", "x"},
                                     {"grid_stride", "1"},
                                     {"tolerance", "-1"},
                                     {"tolerance", "nan"}}) {
    EXPECT_EQ(hone_kernel_spec_add(axpy.spec(), field, value), HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_last_error(), AllOf(HasSubstr(field), HasSubstr(value)));
  }
  hone_kernel* kernel = nullptr;
  EXPECT_EQ(hone_kernel_create(axpy.spec(), &kernel), HONE_INVALID_ARGUMENT);  // no source
  EXPECT_EQ(kernel, nullptr);
  describe_axpy(axpy);
  EXPECT_EQ(hone_kernel_spec_add(axpy.spec(), "source", "twice"), HONE_INVALID_ARGUMENT);
  axpy.field("reference", "__global__ void plain() {}");
  int references = 0;
  EXPECT_EQ(hone_kernel_spec_set_reference(axpy.spec(), axpy_in_double, &references), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("reference"));

  Described unused;
  describe_axpy(unused);
  unused.parameter("idle", {"1", "2"});
  EXPECT_EQ(hone_kernel_create(unused.spec(), &kernel), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("idle"));

  hone_kernel_argument argument;
  ASSERT_EQ(hone_kernel_argument_init(&argument, sizeof argument), HONE_OK);
  EXPECT_EQ(hone_kernel_spec_add_argument(unused.spec(), &argument), HONE_INVALID_ARGUMENT);  // no name
  argument.name = "x";
  argument.kind = 5;
  EXPECT_EQ(hone_kernel_spec_add_argument(unused.spec(), &argument), HONE_INVALID_ARGUMENT);
  argument.kind = HONE_ARGUMENT_IN, argument.dtype = 1000;
  EXPECT_EQ(hone_kernel_spec_add_argument(unused.spec(), &argument), HONE_INVALID_ARGUMENT);
}

TEST_F(CApi, CallsOfAKernelThatDoNotFitItAreRefused) {
  Described axpy;
  describe_axpy(axpy);
  const std::int64_t n = 10;
  const double a = 1;
  std::vector<float> x(10), y(10);
  void* const arrays[] = {x.data(), y.data(), nullptr};
  const auto launch = [&](const hone_kernel* kernel, std::int32_t array_count, std::int32_t scalar_count) {
    return hone_kernel_launch(session_, kernel, arrays, array_count, &a, scalar_count, &n, 1, nullptr, nullptr);
  };
  EXPECT_EQ(launch(axpy.kernel(), 3, 1), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), AllOf(HasSubstr("2 arrays (x, y)"), HasSubstr("3 were passed")));
  EXPECT_EQ(launch(axpy.kernel(), 2, 0), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("1 scalars (a)"));
  EXPECT_EQ(launch(axpy.kernel(), -1, 1), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(launch(nullptr, 2, 1), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_kernel_launch(session_, axpy.kernel(), nullptr, 2, &a, 1, &n, 1, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_kernel_launch(session_, axpy.kernel(), arrays + 1, 2, &a, 1, &n, 1, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);  // the second is null
  const double too_large = 1e39;
  EXPECT_EQ(hone_kernel_launch(session_, axpy.kernel(), arrays, 2, &too_large, 1, &n, 1, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), AllOf(HasSubstr("a is 1e+39"), HasSubstr("f32")));
  std::int64_t elements[2];
  const std::int64_t negative = -1;
  EXPECT_EQ(hone_kernel_elements(axpy.kernel(), &negative, 1, elements, 2), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_kernel_elements(axpy.kernel(), &n, 1, elements, 1), HONE_INVALID_ARGUMENT);
  hone_problem* problem = nullptr;
  EXPECT_EQ(hone_problem_kernel(axpy.kernel(), &n, 4, 16, &problem), HONE_INVALID_ARGUMENT);
  hone_kernel_destroy(nullptr);
  hone_kernel_spec_destroy(nullptr);
}

}  // namespace
}  // namespace hone::test
