// The inputs that own kernels are verified on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <hone/kernel_family.h>
#include <hone/tunable_kernel.h>
#include <hone/verifier.h>

namespace hone {
namespace {

std::vector<float> special_input(std::int64_t n) {
  const TunableKernel same({.source = R"(extern "C" __global__ void same(const float* x, float* y, int n) {
  const int i = blockIdx.x * block_threads + threadIdx.x;
  if (i < n) y[i] = x[i];
})",
                            .parameters = {ordinal("block_threads", {64})},
                            .arguments = {in<float>("x"), out<float>("y"), extent<int>("n")}});
  const Problem problem = same.problem(n);
  const std::vector<std::byte> bytes = problem.family->verifier().input_pattern(problem, 0, "special");
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(SpecVerifier, ShortArraysHaveSpecialValues) {
  for (const std::int64_t n : {42, 43, 48, 67, 100, 255, 498, 1000, 2492, 5981, 5982, 70000}) {
    const std::vector<float> values = special_input(n);
    const auto count = [&](auto is_one) { return std::count_if(values.begin(), values.end(), is_one); };
    EXPECT_GE(count([](float x) { return std::isnan(x); }), 1) << n;
    EXPECT_GE(count([](float x) { return std::isinf(x) && x > 0; }), 1) << n;
    EXPECT_GE(count([](float x) { return std::isinf(x) && x < 0; }), 1) << n;
    EXPECT_GE(count([](float x) { return x == 0 && std::signbit(x); }), 1) << n;
    EXPECT_GE(count([](float x) { return std::fpclassify(x) == FP_SUBNORMAL; }), 1) << n;
    EXPECT_LE(count([](float x) { return !std::isnormal(x); }), 1 + n / 7) << n;
  }
  EXPECT_TRUE(std::isnan(special_input(4)[3]));
  EXPECT_EQ(special_input(0).size(), 0U);
}

TEST(SpecVerifier, LongArraysHaveFewSpecialValues) {
  const std::vector<float> values = special_input(65521);
  EXPECT_EQ(std::count_if(values.begin(), values.end(), [](float x) { return !std::isnormal(x); }), 65521 / 997 + 1);
}

}  // namespace
}  // namespace hone
