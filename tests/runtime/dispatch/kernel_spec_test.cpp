// Kernels that a program brings, as KernelSpec, on a real device: right results, and a clear error for each mistake.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <hone/tunable_kernel.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/temp_folder.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;

/// y[i] = a · x[i] + y[i], each thread `unroll` times.
KernelSpec axpy() {
  return {.source = R"(extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  for (int u = 0; u < unroll; ++u) {
    const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
  }
})",
          .parameters = {ordinal("block_threads", {64, 128}), ordinal("unroll", {1, 2})},
          .arguments = {scalar<float>("a"), in<float>("x"), inout<float>("y"), extent<int>("n")},
          .elements_per_thread = {"unroll"},
          .reference = [](float a, std::span<const float> x, std::span<float> y, int n) {
            for (int i = 0; i < n; ++i) y[static_cast<std::size_t>(i)] += a * x[static_cast<std::size_t>(i)];
          }};
}

/// The same with a factor of another type.
template <class T>
KernelSpec axpy_by() {
  KernelSpec spec = axpy();
  constexpr std::string_view kUsual = "float a";
  spec.source.replace(spec.source.find(kUsual), kUsual.size(), std::string(info(kDTypeOf<T>).cuda_name) + " a");
  spec.arguments[0] = scalar<T>("a");
  spec.reference = {};
  return spec;
}

/// out[y][x] = in[y][x] + in[y][x + 1], staged through shared memory of a size that the policy decides.
KernelSpec pairs() {
  return {.source = R"(template <int columns, class T>
__global__ void pairs(const T* in, T* out, unsigned width, unsigned height) {
  extern __shared__ unsigned char bytes[];
  T* tile = reinterpret_cast<T*>(bytes) + threadIdx.y * (columns + 1);
  const unsigned x = blockIdx.x * columns + threadIdx.x, y = blockIdx.y * block_y + threadIdx.y;
  const unsigned row = y < height ? y : height - 1;
  if (x <= width) tile[threadIdx.x] = in[row * (width + 1) + x];
  if (threadIdx.x == columns - 1 && x + 1 <= width) tile[columns] = in[row * (width + 1) + x + 1];
  __syncthreads();
  if (x < width && y < height) out[y * width + x] = tile[threadIdx.x] + tile[threadIdx.x + 1];
})",
          .entry = "pairs<columns, int>",
          .parameters = {ordinal("columns", {32, 64}), ordinal("block_y", {4, 2, 8})},
          .where = {"columns * block_y <= 256"},
          .extents = {"width", "height"},
          .arguments = {in<std::int32_t>("in", "(width + 1) * height"), out<std::int32_t>("out"),
                        extent<unsigned>("width"), extent<unsigned>("height")},
          .block = {"columns", "block_y"},
          .dynamic_smem_bytes = "4 * (columns + 1) * block_y"};
}

class KernelSpecTest : public DeviceTest {
 protected:
  SessionOptions tuned() const {
    return {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::minutes(1), .cache_path = folder_ / "cache"};
  }

  /// The message of the error that `spec` gives when it is described or, for 1000 elements, tuned.
  std::string error_of(const KernelSpec& spec, const KernelExtents& extents = 1000) {
    Session session(device_, tuned());
    try {
      session.tune(TunableKernel(spec).problem(extents), {.budget = std::chrono::seconds(60)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      EXPECT_EQ(session.counters().tunings, 0u);
      return error.what();
    }
    return "";
  }

  /// Returns the fault of every policy of `spec` that was measured.
  std::string fault_of(const KernelSpec& spec, const KernelExtents& extents = 1000) {
    Session session(device_, tuned());
    const Tuning tuning = session.tune(TunableKernel(spec).problem(extents), {.budget = std::chrono::seconds(60)});
    EXPECT_FALSE(tuning.winner);
    EXPECT_EQ(session.counters().tunings, 0u);
    return tuning.trials.empty() ? "" : tuning.trials.front().reason.text();
  }

  TempFolder folder_;
};

/// y[i] = x[i] + 1.
KernelSpec next() {
  return {.source = R"(extern "C" __global__ void next(const float* x, float* y, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
})",
          .parameters = {ordinal("block_threads", {64})},
          .arguments = {in<float>("x"), out<float>("y"), extent<int>("n")}};
}

TEST_F(KernelSpecTest, ArraysThatOverlapWhatIsWrittenAreRefused) {
  Session session(device_, quick());
  const TunableKernel kernel(next()), updating(axpy());
  std::vector<float> values(101);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto array = upload(values);
  const float* const first = array.data;
  const auto refusal = [&](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "it was launched";
  };
  const auto refusal_of = [&](const float* x, const float* y) {
    return refusal([&] { session.launch(kernel, {x, y}, 100, nullptr); });
  };
  EXPECT_THAT(refusal_of(first, first + 1), Names("next", "'x' at", "'y' at", "overlap", "the same address"));
  EXPECT_THAT(refusal_of(first + 1, first), HasSubstr("overlap"));
  EXPECT_THAT(refusal([&] { session.launch(updating, {2.0f, first, first + 1}, 100, nullptr); }),
              Names("'x' at", "'y' at", "overlap"));
  EXPECT_EQ(array.memory.to_host<float>(), values);

  session.launch(kernel, {first, first}, 100, nullptr);
  session.launch(kernel, {first + 50, first}, 50, nullptr);
  const std::vector<float> result = array.memory.to_host<float>();
  EXPECT_EQ(result[0], 52);
  EXPECT_EQ(result[99], 100);
}

TEST_F(KernelSpecTest, ComputesWhatItSaysForEverySizeAndFindsItsWinnerAgain) {
  const std::vector<float> x = random_values<float>(3000);
  for (const ChoiceSource source : {ChoiceSource::tuned, ChoiceSource::cache}) {
    Session session(device_, tuned());
    const TunableKernel kernel(axpy());  // another one with the same description, as another program would make it
    for (const std::size_t n : {1u, 63u, 64u, 200u, 257u}) {
      const auto in = upload(x), out = upload(x, 1);
      const Choice choice = session.launch(kernel, {2.0f, in.data, out.data}, n, nullptr);
      if (n == 1) {
        EXPECT_EQ(choice.source, source);
      }
      const std::vector<float> found = out.memory.to_host<float>();
      for (std::size_t i = 0; i < 300; ++i) EXPECT_FLOAT_EQ(found[i + 1], i < n ? 2 * x[i] + x[i] : x[i]) << n;
    }
  }
}

TEST_F(KernelSpecTest, ATemplateWithTwoExtentsAndSharedMemoryAgreesWithItsDefaultPolicy) {
  Session session(device_, tuned());
  const TunableKernel kernel(pairs());
  constexpr std::size_t kWidth = 131, kHeight = 13;
  std::vector<std::int32_t> values((kWidth + 1) * kHeight);
  std::iota(values.begin(), values.end(), 5);
  const auto in = upload(values);
  const DeviceBuffer out(device_, kWidth * kHeight * sizeof(std::int32_t));
  const Choice choice = session.launch(kernel, {in.data, out}, {kWidth, kHeight}, nullptr);
  EXPECT_EQ(choice.source, ChoiceSource::tuned);
  const std::vector<std::int32_t> found = out.to_host<std::int32_t>();
  for (std::size_t y = 0; y < kHeight; ++y)
    for (std::size_t x = 0; x < kWidth; ++x)
      ASSERT_EQ(found[y * kWidth + x], values[y * (kWidth + 1) + x] + values[y * (kWidth + 1) + x + 1])
          << x << ' ' << y;
}

TEST_F(KernelSpecTest, AGridStrideLoopIsTriedWithPersistentGrids) {
  KernelSpec spec = axpy();
  spec.source = R"(extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  for (int i = blockIdx.x * block_threads + threadIdx.x; i < n; i += gridDim.x * block_threads) y[i] = a * x[i] + y[i];
})";
  spec.parameters.pop_back();
  spec.elements_per_thread = {};
  spec.grid_stride = true;
  Session session(device_, tuned());
  const Tuning tuning = session.tune(TunableKernel(spec).problem(1 << 20), {.budget = std::chrono::seconds(60)});
  ASSERT_TRUE(tuning.winner);
  EXPECT_TRUE(std::ranges::any_of(tuning.trials, [](const Trial& trial) {
    return trial.samples > 0 && !trial.candidate.geometry.is_block_per_tile();
  }));
}

TEST_F(KernelSpecTest, APlainKernelIsAReference) {
  KernelSpec spec = axpy();
  spec.reference = KernelReference::kernel(R"(__global__ void plain(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
})");
  Session session(device_, tuned());
  EXPECT_TRUE(session.tune(TunableKernel(spec).problem(1000), {}).winner);
  spec.reference = KernelReference::kernel(R"(__global__ void plain(float a, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1.01f * a * x[i] + y[i];
})");
  EXPECT_THAT(fault_of(spec), Names("y[0]", "reference"));
}

TEST_F(KernelSpecTest, AReferenceInDoubleIsConverted) {
  KernelSpec spec = axpy();
  spec.reference = [](double a, std::span<const double> x, std::span<double> y, std::int64_t) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
  };
  Session session(device_, tuned());
  EXPECT_TRUE(session.tune(TunableKernel(spec).problem(1000), {}).winner);
}

TEST_F(KernelSpecTest, IndicesStayBelowTheirBound) {
  Session session(device_, tuned());
  const TunableKernel gather(
      {.source = R"(extern "C" __global__ void gather(const float* x, const int* at, float* y, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) y[i] = x[at[i]];
})",
       .parameters = {ordinal("block_threads", {64, 128})},
       .arguments = {in<float>("x", "7"), in<std::int32_t>("at").indices_below("7"), out<float>("y"), extent<int>("n")},
       .reference = [](std::span<const float> x, std::span<const std::int32_t> at, std::span<float> y, int) {
         for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[static_cast<std::size_t>(at[i])];
       }});
  EXPECT_TRUE(session.tune(gather.problem(1000), {}).winner);
}

TEST_F(KernelSpecTest, AWrongConstantAMissingGuardAndAnInputThatIsWrittenAreFound) {
  KernelSpec spec = axpy();
  spec.source.replace(spec.source.find("a * x[i]"), 8, "a * x[i] * 1.001f");
  EXPECT_THAT(fault_of(spec), Names("y[0]", "1000 elements"));

  spec = axpy();
  spec.source.replace(spec.source.find("if (i < n)"), 10, "");
  EXPECT_THAT(fault_of(spec), Names("'y'", "4000"));

  spec = axpy();
  spec.arguments[1] = in<float>("x");
  spec.arguments[2] = in<float>("y");
  spec.arguments[3] = out<float>("z");
  spec.source.replace(spec.source.find("int n"), 5, "float* z");
  spec.source.replace(spec.source.find("i < n"), 5, "z");
  spec.reference = {};
  EXPECT_THAT(fault_of(spec), HasSubstr("'y'"));
}

TEST_F(KernelSpecTest, AWrongKernelIsFoundAtItsFirstCallThoughNothingIsTuned) {
  KernelSpec spec = axpy();
  spec.source.replace(spec.source.find("a * x[i]"), 8, "a * x[i] * 1.001f");
  Session session(device_, quick());
  const DeviceBuffer x(device_, std::vector<float>(1000, 1)), y(device_, std::vector<float>(1000, 1));
  try {
    session.launch(TunableKernel(spec), {2.0f, x, y}, 1000, nullptr);
    ADD_FAILURE() << "the kernel was launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("axpy", "y[0]"));
  }
  EXPECT_EQ(y.to_host<float>().front(), 1) << "the caller's array was touched";
}

TEST_F(KernelSpecTest, AParameterThatNothingUsesIsRefused) {
  KernelSpec spec = axpy();
  spec.source.insert(0, "// prefetch\n");  // a comment is no use
  spec.parameters.push_back(ordinal("prefetch", {1, 2}));
  EXPECT_THAT(error_of(spec), Names("axpy", "prefetch"));
}

TEST_F(KernelSpecTest, AnUnknownNameIsRefusedWhereItStands) {
  KernelSpec spec = axpy();
  spec.where = {"unroll * blok <= 512"};
  EXPECT_THAT(error_of(spec), Names("where", "unroll * blok <= 512", "column 10", "blok", "block_threads"));
  spec = axpy();
  spec.entry = "axpi";
  EXPECT_THAT(error_of(spec), Names("axpi", "axpy"));
}

TEST_F(KernelSpecTest, ArgumentsThatAreNotThoseOfTheKernelAreRefused) {
  KernelSpec spec = axpy();
  spec.reference = {};
  spec.arguments.pop_back();
  EXPECT_THAT(error_of(spec), Names("axpy", "4 parameters", "3 arguments"));
  spec = axpy();
  spec.arguments[3] = extent<std::int64_t>("n");
  EXPECT_THAT(error_of(spec), Names("parameter 4", "4 bytes", "8"));
}

TEST_F(KernelSpecTest, AReferenceThatThrowsEndsTheTuning) {
  KernelSpec spec = axpy();
  spec.reference = [](float, std::span<const float>, std::span<float>, int) { throw std::runtime_error("no answer"); };
  EXPECT_THAT(error_of(spec), Names("axpy", "reference", "no answer"));
}

TEST_F(KernelSpecTest, AReferenceThatDoesNotFitTheArgumentsIsRefused) {
  KernelSpec spec = axpy();
  spec.reference = [](float, std::span<float>, std::span<float>, int) {};
  EXPECT_THAT(error_of(spec), Names("parameter 2", "x", "const"));
  spec.reference = [](float) {};
  EXPECT_THAT(error_of(spec), Names("4 arguments", "1 parameters"));
}

TEST_F(KernelSpecTest, SizesThatNoPolicyAcceptsSayWhy) {
  KernelSpec spec = pairs();
  EXPECT_THAT(fault_of(spec, {10, 2'000'000}), Names("grid"));
  spec = axpy();
  spec.where = {"block_threads > 512"};
  EXPECT_THAT(error_of(spec), Names("block_threads > 512"));
}

TEST_F(KernelSpecTest, NumbersThatAScalarCannotBeAreRefused) {
  Session session(device_, quick());
  const DeviceBuffer array(device_, 4096);
  const auto refusal = [&]<class T>(T, KernelValue value) -> std::string {
    try {
      session.launch(TunableKernel(axpy_by<T>()), {value, array, array}, 10, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  const double nan = std::nan("");
  EXPECT_THAT(refusal(std::int32_t(), nan), Names("a is nan", "i32", "-2147483648 to 2147483647"));
  EXPECT_EQ(refusal(std::int32_t(), -2147483648.0), "");
  EXPECT_THAT(refusal(std::int32_t(), 1.5), Names("a is 1.5", "i32"));
  EXPECT_THAT(refusal(std::uint32_t(), -1), Names("a is -1", "u32", "0 to 4294967295"));
  EXPECT_THAT(refusal(std::int64_t(), std::uint64_t{1} << 63),
              Names("9.223372036854776e+18", "i64", "9007199254740991"));
  EXPECT_THAT(refusal(std::int64_t(), (std::int64_t{1} << 53) + 1), Names("i64", "-9007199254740991"));
  EXPECT_THAT(refusal(std::uint64_t(), ~std::uint64_t{0}), Names("u64", "0 to 9007199254740991"));
  EXPECT_THAT(refusal(float(), 1e39), Names("a is 1e+39", "f32", "wider"));
  EXPECT_EQ(refusal(float(), std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(refusal(float(), nan), "");
  EXPECT_EQ(refusal(float(), std::int64_t{1} << 62), "");

  KernelSpec spec = axpy_by<std::int32_t>();
  spec.arguments[0].value = 0.5;
  EXPECT_THAT(error_of(spec), Names("a is 0.5", "i32"));
}

TEST_F(KernelSpecTest, AProblemWithAScalarThatCannotBeIsNotLaunched) {
  Session session(device_, quick());
  const TunableKernel kernel(axpy_by<std::int32_t>());
  const DeviceBuffer array(device_, 4096);
  void* const buffers[] = {array.data(), array.data()};
  Problem problem = kernel.problem(10);
  problem.scalars[0] = 2;
  session.launch(problem, buffers, nullptr);  // what follows is a hit
  problem.scalars[0] = 0x1p40;
  EXPECT_THROW(session.launch(problem, buffers, nullptr), Error);
}

TEST_F(KernelSpecTest, CallsThatDoNotFitAreRefused) {
  Session session(device_, quick());
  const TunableKernel kernel(axpy());
  const DeviceBuffer array(device_, 4096);
  const auto refusal = [&](std::initializer_list<KernelValue> values, const KernelExtents& extents) -> std::string {
    try {
      session.launch(kernel, values, extents, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({1.0f, array}, 10), Names("y", "missing", "a, x, y"));
  EXPECT_THAT(refusal({array, array, array}, 10), Names("a", "number"));
  EXPECT_THAT(refusal({1.0f, array, array, array}, 10), Names("4 values"));
  EXPECT_THAT(refusal({0.5f, nullptr, array}, 10), Names("n=10 a=0.5", "x", "null"));
  EXPECT_THAT(refusal({1.0f, array.as<char>() + 2, array}, 10), Names("x", "4 bytes"));
  EXPECT_THAT(refusal({1.0f, array, array}, {10, 10}), Names("1 extents", "with 2"));
  EXPECT_THAT(refusal({1.0f, array, array}, 3'000'000'000), Names("3000000000", "int"));
  EXPECT_THAT(refusal({1.0f, array, array}, -1), Names("-1"));
  EXPECT_EQ(session.launch(kernel, {1.0f, nullptr, nullptr}, 0, nullptr).winner, nullptr);
}

}  // namespace
}  // namespace hone
