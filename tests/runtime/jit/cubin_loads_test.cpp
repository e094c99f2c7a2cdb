#include "runtime/jit/cubin_loads.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <hone/sdk/gpu_compiler.h>

namespace hone {
namespace {

/// The bytes that a thread of kernel `k` has in flight; its parameters are `in` and `out`.
std::optional<int> in_flight(const std::string& body, std::string_view architecture = "sm_90") {
  const std::string source =
      "extern \"C\" __global__ void __launch_bounds__(256, 1) k(const float4* in, float* out) {\n" + body + "\n}\n";
  const Binary cubin = compile_for_gpu({.name = "loads", .source = source, .headers = {}, .entries = {}}, architecture);
  return cubin_bytes_in_flight(cubin.code, architecture, "k");
}

/// Eight independent loads, and their sum.
constexpr const char* kEightLoads = R"(
  float4 v[8];
  float sum = 0;
  for (int i = 0; i < 8; ++i) v[i] = in[threadIdx.x + i * 256];
  for (int i = 0; i < 8; ++i) sum += v[i].x + v[i].y * v[i].z + v[i].w;
  out[threadIdx.x] = sum;)";

/// Each load needs the result of the one before.
constexpr const char* kChain = R"(
  int at = threadIdx.x;
  #pragma unroll 1
  for (int i = 0; i < 1000; ++i) at = static_cast<int>(in[at].x);
  out[threadIdx.x] = at;)";

class CubinLoads : public testing::Test {
 protected:
  void SetUp() override {
    if (GpuCompiler().identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
  }
};

TEST_F(CubinLoads, ThatAreIndependentAreInFlightTogether) {
  for (const char* architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"})
    EXPECT_EQ(in_flight(kEightLoads, architecture), 8 * 16) << architecture;
}

TEST_F(CubinLoads, ThatDependOnEachOtherAreInFlightAlone) {
  for (const char* architecture : {"sm_75", "sm_80", "sm_90", "sm_100"})
    EXPECT_EQ(in_flight(kChain, architecture), 4) << architecture;
}

TEST_F(CubinLoads, AreCountedInTheLoopThatLoadsMost) {
  const std::string loop = R"(
  const float4* from = in + threadIdx.x;
  #pragma unroll 1
  for (int i = 0; i < 1000; ++i) {
    const float4 v = *from;
    from += 1 + (v.x + v.y + v.z + v.w > 0);
  }
  in = from;)";
  EXPECT_EQ(in_flight(loop + "{" + kEightLoads + "}"), 8 * 16) << "once, 8 loads outweigh a round of the loop";
  const std::string two_loads = R"(
  const float4 a = in[threadIdx.x], b = in[threadIdx.x + 256];
  out[threadIdx.x] = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;)";
  EXPECT_EQ(in_flight(loop + two_loads), 16);
}

TEST_F(CubinLoads, OfTwoPathsCountOnce) {
  const std::string paths = R"(
  float4 v = {};
  if (in[0].x > 0) v = in[threadIdx.x]; else v.x = in[threadIdx.x + 4].y;
  out[threadIdx.x] = v.x + v.y + v.z + v.w;)";
  EXPECT_LE(in_flight(paths).value_or(0), 16 + 4);
}

TEST_F(CubinLoads, AreNotKnownOfCopiesToSharedMemory) {
  EXPECT_EQ(in_flight(R"(
  __shared__ float4 tile[256];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x].x + in[1000].x;)"),
            std::nullopt);
}

TEST_F(CubinLoads, AreNotKnownOfKernelsThatLoadNothingOrAreAbsent) {
  EXPECT_EQ(in_flight("out[threadIdx.x] = 1;"), std::nullopt);
  const Binary cubin = compile_for_gpu(
      {.name = "loads", .source = "extern \"C\" __global__ void k() {}", .headers = {}, .entries = {}}, "sm_90");
  EXPECT_EQ(cubin_bytes_in_flight(cubin.code, "sm_90", "other"), std::nullopt);
}

TEST_F(CubinLoads, AreNotKnownOfOtherArchitectures) {
  const Binary cubin = compile_for_gpu({.name = "loads",
                                        .source = "extern \"C\" __global__ void k(int* p) { p[0] = p[threadIdx.x]; }",
                                        .headers = {},
                                        .entries = {}},
                                       "sm_90");
  for (const char* architecture : {"sm_70", "sm_200", "x86_64", ""})
    EXPECT_EQ(cubin_bytes_in_flight(cubin.code, architecture, "k"), std::nullopt) << architecture;
}

}  // namespace
}  // namespace hone
