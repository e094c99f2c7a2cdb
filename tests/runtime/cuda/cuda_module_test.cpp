#include <gmock/gmock.h>

#include <algorithm>

#include <hone/error.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/sdk/candidate_plan.h>
#include <hone/sdk/family_table.h>
#include <hone/sdk/occupancy.h>

#include "runtime/jit/nvrtc_compiler.h"
#include "tests/runtime/cuda/cuda_test.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::Each;
using test::Names;

class CudaModuleTest : public CudaTest {
 protected:
  std::string message_of_load(const Binary& binary, const std::vector<std::string>& entries) {
    try {
      device_->load(binary, entries);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_failed);
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
};

TEST_F(CudaModuleTest, LaunchesWhatItLoaded) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  constexpr std::size_t kCount = 1000;
  const Array<int> memory = allocate<int>(kCount);
  device_->fill_bytes(memory.get(), 0, kCount * sizeof(int), stream_);
  device_->launch(module->kernel(0), launch_of(4, 256, memory.get(), 7, 999LL), stream_);
  device_->launch(module->kernel(0), launch_of(4, 256, memory.get(), -2, 999LL), stream_);
  std::vector<int> values = fetch(memory, kCount);
  EXPECT_EQ(values.back(), 0);
  values.pop_back();
  EXPECT_THAT(values, Each(5));
}

TEST_F(CudaModuleTest, PassesArgumentsOfEverySize) {
  const std::unique_ptr<Module> module = load(
      "extern \"C\" __global__ void k(double* out, char a, short b, int c, long long d, float e, double f, bool g,\n"
      "                               unsigned char h) {\n"
      "  *out = a + 10.0 * b + 100.0 * c + 1000.0 * d + 10000.0 * e + 100000.0 * f + 1e6 * g + 1e7 * h;\n"
      "}\n",
      {"k"});
  const Array<double> out = allocate<double>(1);
  device_->launch(module->kernel(0),
                  launch_of(1, 1, out.get(), char{1}, short{2}, 3, 4LL, 5.0F, 6.0, true, static_cast<unsigned char>(8)),
                  stream_);
  EXPECT_EQ(fetch(out, 1).front(), 81'654'321.0);
}

TEST_F(CudaModuleTest, PassesAllThreeExtents) {
  const std::unique_ptr<Module> module = load(
      "extern \"C\" __global__ void k(unsigned* out) {\n"
      "  if (blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x + threadIdx.y + threadIdx.z == 0) {\n"
      "    out[0] = gridDim.x; out[1] = gridDim.y; out[2] = gridDim.z;\n"
      "    out[3] = blockDim.x; out[4] = blockDim.y; out[5] = blockDim.z;\n"
      "  }\n"
      "}\n",
      {"k"});
  const Array<unsigned> out = allocate<unsigned>(6);
  Launch launch = launch_of(5, 32, out.get());
  launch.grid = {5, 3, 2};
  launch.block = {32, 4, 6};
  device_->launch(module->kernel(0), launch, stream_);
  EXPECT_THAT(fetch(out, 6), testing::ElementsAre(5, 3, 2, 32, 4, 6));
}

TEST_F(CudaModuleTest, FindsEntriesInTheirOrder) {
  const std::unique_ptr<Module> module = load(
      "extern \"C\" __global__ void one(int* p) { *p = 1; }\n"
      "extern \"C\" __global__ void two(int* p) { *p = 2; }\n",
      {"two", "one"});
  const Array<int> out = allocate<int>(1);
  device_->launch(module->kernel(0), launch_of(1, 1, out.get()), stream_);
  EXPECT_EQ(fetch(out, 1).front(), 2);
  device_->launch(module->kernel(1), launch_of(1, 1, out.get()), stream_);
  EXPECT_EQ(fetch(out, 1).front(), 1);
}

TEST_F(CudaModuleTest, ReportsResources) {
  const std::unique_ptr<Module> module = load(
      "extern \"C\" __global__ void __launch_bounds__(256) k(float* p, int n) {\n"
      "  __shared__ float s[500];\n"
      "  volatile float spilled[100];\n"
      "  for (int i = 0; i < n; ++i) spilled[i] = p[i];\n"
      "  s[threadIdx.x] = spilled[n / 2];\n"
      "  __syncthreads();\n"
      "  p[threadIdx.x] = s[255 - threadIdx.x];\n"
      "}\n",
      {"k"});
  const Resources& resources = module->kernel(0).resources;
  EXPECT_GT(resources.registers, 0);
  EXPECT_EQ(resources.static_smem_bytes, 2000);
  EXPECT_GE(resources.local_bytes, 400);
  EXPECT_EQ(resources.max_threads_per_block, 256);
}

TEST_F(CudaModuleTest, AllowsAllSharedMemoryOfTheDevice) {
  const std::unique_ptr<Module> module = load(
      "extern \"C\" __global__ void k(int* out, int last) {\n"
      "  extern __shared__ int s[];\n"
      "  for (int i = threadIdx.x; i <= last; i += blockDim.x) s[i] = i;\n"
      "  __syncthreads();\n"
      "  out[threadIdx.x] = s[last - threadIdx.x];\n"
      "}\n",
      {"k"});
  const int bytes = device_->facts().smem_bytes_per_block_optin;
  const int last = bytes / 4 - 1;
  const Array<int> out = allocate<int>(64);
  Launch launch = launch_of(2, 64, out.get(), last);
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(bytes);
  device_->launch(module->kernel(0), launch, stream_);
  EXPECT_EQ(fetch(out, 64).back(), last - 63);
}

TEST_F(CudaModuleTest, RefusesAnImpossibleLaunchAndNamesIt) {
  const std::unique_ptr<Module> module = load(kAddKernel, {"add"});
  try {
    device_->launch(module->kernel(0), launch_of(3, 2048, static_cast<int*>(nullptr), 0, 0LL), stream_);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("3x1x1", "blocks", "2048x1x1"));
  }
  device_->synchronize(stream_);
}

TEST_F(CudaModuleTest, ResidentBlocksAreThoseOfTheModel) {
  const std::vector<std::string> bounds{"", "__launch_bounds__(1024, 2)", "__launch_bounds__(256, 1)"};
  for (const int static_floats : {0, 256, 5000, 12000}) {
    for (const int live : {1, 24, 100}) {
      for (const std::string& bound : bounds) {
        std::string source = "extern \"C\" __global__ void " + bound + " k(float* p, int n) {\n  float r[" +
                             std::to_string(live) + "];\n#pragma unroll\n  for (int i = 0; i < " +
                             std::to_string(live) + "; ++i) r[i] = p[i * n];\n";
        if (static_floats > 0) {
          source += "  __shared__ float s[" + std::to_string(static_floats) + "];\n  s[threadIdx.x % " +
                    std::to_string(static_floats) + "] = r[0];\n  __syncthreads();\n  r[0] = s[n % " +
                    std::to_string(static_floats) + "];\n";
        }
        source += "#pragma unroll\n  for (int i = 0; i < " + std::to_string(live) + "; ++i) p[i * n + 1] = r[i] * r[" +
                  std::to_string(live - 1) + " - i];\n}\n";
        const std::unique_ptr<Module> module = load(source, {"k"});
        const Kernel& kernel = module->kernel(0);
        for (const int threads : {0, 1, 32, 33, 96, 128, 256, 320, 512, 768, 1024, 1025}) {
          for (const std::size_t dynamic_bytes : {0, 1, 1000, 16384, 49152, 100000, 1 << 20}) {
            EXPECT_EQ(device_->resident_blocks(kernel, threads, dynamic_bytes),
                      resident_blocks(device_->facts(), kernel.resources, threads, dynamic_bytes))
                << threads << " threads, " << dynamic_bytes << " dynamic, " << kernel.resources.static_smem_bytes
                << " static bytes, " << kernel.resources.registers << " registers " << bound;
          }
        }
      }
    }
  }
}

TEST_F(CudaModuleTest, ABinaryOfAnotherFormatIsRefused) {
  Binary binary = compile(kAddKernel);
  binary.format = "elf";
  EXPECT_THAT(message_of_load(binary, {"add"}), Names("\"elf\"", "cubin"));
}

TEST_F(CudaModuleTest, ABinaryForAnotherArchitectureIsRefused) {
  const std::string other = device_->facts().compute_capability / 10 == 8 ? "sm_90" : "sm_80";
  const NvrtcCompiler compiler(NvrtcSearch::from_environment());
  const Unit unit{.name = "add", .source = kAddKernel, .headers = {}, .entries = {}};
  Binary binary = compiler.compile(unit, other);
  EXPECT_THAT(message_of_load(binary, {"add"}), Names(other, device_->facts().architecture));

  binary.architecture = device_->facts().architecture;  // a lie: the driver finds out
  EXPECT_THAT(message_of_load(binary, {"add"}), Names("CUDA", "failed"));
}

TEST_F(CudaModuleTest, ADamagedBinaryIsRefused) {
  Binary binary = compile(kAddKernel);
  binary.code.resize(binary.code.size() / 2);
  EXPECT_THAT(message_of_load(binary, {"add"}), Names("damaged"));
  binary.code.clear();
  EXPECT_THAT(message_of_load(binary, {"add"}), Names("damaged"));
}

TEST_F(CudaModuleTest, AMissingEntryIsNamed) {
  EXPECT_THAT(message_of_load(compile(kAddKernel), {"add", "subtract"}), Names("\"subtract\""));
}

TEST_F(CudaModuleTest, CanBeLoadedAndUnloadedManyTimes) {
  const Binary binary = compile(kAddKernel);
  const Array<int> memory = allocate<int>(32);
  device_->fill_bytes(memory.get(), 0, 128, stream_);
  for (int i = 0; i < 100; ++i) {
    const std::unique_ptr<Module> module = device_->load(binary, {"add"});
    device_->launch(module->kernel(0), launch_of(1, 32, memory.get(), 1, 32LL), stream_);
    device_->synchronize(stream_);
  }
  EXPECT_THAT(fetch(memory, 32), Each(100));
}

TEST_F(CudaModuleTest, KeepsNoPointerIntoTheBinary) {
  auto binary = std::make_unique<Binary>(compile(kAddKernel));
  const std::unique_ptr<Module> module = device_->load(*binary, {"add"});
  std::fill(binary->code.begin(), binary->code.end(), std::byte{0});
  binary.reset();
  const Array<int> memory = allocate<int>(32);
  device_->fill_bytes(memory.get(), 0, 128, stream_);
  device_->launch(module->kernel(0), launch_of(1, 32, memory.get(), 4, 32LL), stream_);
  EXPECT_THAT(fetch(memory, 32), Each(4));
}

// The plans for an absent GPU are those that the driver gives for the one that is there.
TEST_F(CudaModuleTest, ItsAbsentTwinPlansTheSameCandidates) {
  const std::shared_ptr<Device> twin = make_absent_gpu(device_->facts());
  for (const FamilyRow& row : built_in_families()) {
    Problem problem{.family = &row.family(), .extents = {4096, 1024, 1}};
    if (problem.family->extent_names().size() == 1) problem.extents = {1 << 22, 1, 1};
    if (!problem.family->refuse(problem).empty()) continue;
    const CandidatePlan there = plan_candidates(*device_, problem, 8), planned = plan_candidates(*twin, problem, 8);
    ASSERT_EQ(there.candidates.size(), planned.candidates.size()) << to_string(problem);
    for (std::size_t i = 0; i < there.candidates.size(); ++i) {
      const Trial &real = there.candidates[i], &other = planned.candidates[i];
      EXPECT_EQ(real.candidate, other.candidate) << to_string(problem) << ", row " << i;
      EXPECT_EQ(real.resources, other.resources) << to_string(problem) << ", row " << i;
      EXPECT_EQ(real.resident_blocks, other.resident_blocks) << to_string(problem) << ", row " << i;
      EXPECT_DOUBLE_EQ(real.predicted_us, other.predicted_us) << to_string(problem) << ", row " << i;
    }
  }
}

}  // namespace
}  // namespace hone
