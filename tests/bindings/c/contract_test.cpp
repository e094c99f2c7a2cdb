// The contract of all functions of the C interface: names, statuses, errors, null pointers, structs of other versions.
#include <cstddef>
#include <thread>
#include <utility>

#include "tests/bindings/c/c_fixture.h"

namespace hone::test {
namespace {

using testing::HasSubstr;

TEST(CNames, AreThoseOfTheTables) {
  for (std::int32_t op = 0; hone_op_name(op) != nullptr; ++op) EXPECT_EQ(hone_op(hone_op_name(op)), op);
  for (std::int32_t dtype = 0; hone_dtype_name(dtype) != nullptr; ++dtype) {
    EXPECT_EQ(hone_dtype(hone_dtype_name(dtype)), dtype);
    EXPECT_GT(hone_dtype_size(dtype), 0u);
  }
  EXPECT_EQ(hone_dtype_name(-1), nullptr);
  EXPECT_EQ(hone_op_outputs(1000), 0);
}

TEST(CNames, EverySourceOfAChoiceHasOne) {
  const std::pair<std::int32_t, const char*> sources[] = {
      {HONE_FROM_MEMORY, "memory"},       {HONE_FROM_CACHE, "cache"},     {HONE_FROM_TUNING, "tuned"},
      {HONE_FROM_HEURISTIC, "heuristic"}, {HONE_FROM_NEAREST, "nearest"}, {HONE_FROM_SHIPPED, "shipped"}};
  for (const auto& [source, name] : sources) EXPECT_STREQ(hone_source_name(source), name);
  EXPECT_EQ(hone_source_name(HONE_FROM_SHIPPED + 1), nullptr);
  EXPECT_EQ(hone_source_name(-1), nullptr);
}

// Programs store these numbers.
TEST(CNames, NumbersStayTheSame) {
  const char* const ops[] = {"sum",     "product", "min",           "max",           "minmax",
                             "argmin",  "argmax",  "mean",          "mean_variance", "sum_of_squares",
                             "l1_norm", "l2_norm", "max_norm",      "logsumexp",     "dot",
                             "any",     "all",     "count_nonzero", "range"};
  const char* const dtypes[] = {"f16", "bf16", "f32", "f64", "i8",  "i16", "i32",
                                "i64", "u8",   "u16", "u32", "u64", "bool"};
  for (std::size_t i = 0; i < std::size(ops); ++i) EXPECT_EQ(hone_op(ops[i]), static_cast<std::int32_t>(i)) << ops[i];
  for (std::size_t i = 0; i < std::size(dtypes); ++i)
    EXPECT_EQ(hone_dtype(dtypes[i]), static_cast<std::int32_t>(i)) << dtypes[i];
}

TEST_F(CApi, UnknownNamesListTheKnownOnes) {
  EXPECT_EQ(hone_op("summ"), -1);
  EXPECT_THAT(hone_last_error(), testing::AllOf(HasSubstr("summ"), HasSubstr("argmax")));
  EXPECT_EQ(hone_dtype(nullptr), -1);
  hone_device* device = nullptr;
  EXPECT_EQ(hone_device_open("gpu7", &device), HONE_NOT_FOUND);
  EXPECT_EQ(device, nullptr);
}

TEST_F(CApi, NullPointersAndWrongNumbersAreRefused) {
  const hone_reduce_spec spec = reduction("sum", "f32");
  float out = 0;
  const float in = 1;
  EXPECT_EQ(hone_reduce(nullptr, &spec, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("session"));
  EXPECT_EQ(hone_reduce(session_, nullptr, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_reduce(session_, &spec, nullptr, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_reduce(session_, &spec, &in, -1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  for (const std::int32_t bad : {-1, 1000}) {
    hone_reduce_spec wrong = spec;
    wrong.op = bad;
    EXPECT_EQ(hone_reduce(session_, &wrong, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_last_error(), HasSubstr(std::to_string(bad)));
    wrong = spec;
    wrong.dtype = bad;
    EXPECT_EQ(hone_reduce(session_, &wrong, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  }
  hone_reduce_spec wrong = spec;
  wrong.nan_policy = 2;
  EXPECT_EQ(hone_reduce(session_, &wrong, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  hone_problem* problem = nullptr;
  EXPECT_EQ(hone_problem_reduce(&spec, 1, 3, &problem), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(problem, nullptr);
  EXPECT_EQ(hone_tune(session_, nullptr, 100, nullptr), HONE_INVALID_ARGUMENT);
  hone_device_close(nullptr);
  hone_session_destroy(nullptr);
  hone_problem_destroy(nullptr);
  hone_free(nullptr);
}

TEST_F(CApi, NumbersThatMeanNothingAreRefused) {
  const float in = 1;
  float out = 0;
  hone_softmax_spec softmax;
  ASSERT_EQ(hone_softmax_spec_init(&softmax, sizeof softmax), HONE_OK);
  softmax.outer = softmax.reduced = 1;
  softmax.logarithm = 2;
  EXPECT_EQ(hone_softmax(session_, &softmax, &in, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("logarithm is 2"));

  hone_rms_norm_spec norm;
  ASSERT_EQ(hone_rms_norm_spec_init(&norm, sizeof norm), HONE_OK);
  norm.rows = norm.columns = 1;
  norm.reserved = 1;
  EXPECT_EQ(hone_rms_norm(session_, &norm, &in, nullptr, nullptr, &out, nullptr, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("reserved of hone_rms_norm_spec is 1"));

  hone_kernel_spec* kernel = nullptr;
  ASSERT_EQ(hone_kernel_spec_create(&kernel), HONE_OK);
  hone_kernel_argument argument;
  ASSERT_EQ(hone_kernel_argument_init(&argument, sizeof argument), HONE_OK);
  argument.name = "x";
  argument.reserved = -1;
  EXPECT_EQ(hone_kernel_spec_add_argument(kernel, &argument), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("reserved of hone_kernel_argument is -1"));
  hone_kernel_spec_destroy(kernel);
}

TEST_F(CApi, StructsSayTheirSize) {
  hone_reduce_spec spec{};  // never initialised
  float out = 0;
  const float in = 2;
  EXPECT_EQ(hone_reduce(session_, &spec, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("hone_reduce_spec_init"));
  EXPECT_EQ(hone_reduce_spec_init(&spec, sizeof spec + 8), HONE_INVALID_ARGUMENT);

  // A program of an older version, whose struct ended behind `dtype`: nothing behind it is read or written.
  struct {
    std::size_t size;
    std::int32_t op, dtype, guard;
  } older{0, 0, 0, 12345};
  const std::size_t size = offsetof(hone_reduce_spec, accumulator);
  ASSERT_EQ(hone_reduce_spec_init(reinterpret_cast<hone_reduce_spec*>(&older), size), HONE_OK) << hone_last_error();
  EXPECT_EQ(older.guard, 12345);
  EXPECT_EQ(hone_reduce(session_, reinterpret_cast<hone_reduce_spec*>(&older), &in, 1, &out, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_EQ(out, 2);
}

TEST_F(CApi, ErrorsBelongToTheirThread) {
  EXPECT_EQ(hone_op("nowhere"), -1);
  std::thread([] {
    EXPECT_STREQ(hone_last_error(), "");
    EXPECT_EQ(hone_op("elsewhere"), -1);
  }).join();
  EXPECT_THAT(hone_last_error(), HasSubstr("nowhere"));
}

TEST(CStatus, HasNames) {
  for (hone_status status = HONE_OK; status <= HONE_INTERNAL; ++status)
    EXPECT_EQ(std::string(hone_status_name(status)).rfind("HONE_", 0), 0u) << status;
  EXPECT_STREQ(hone_status_name(99), "unknown status");
}

}  // namespace
}  // namespace hone::test
