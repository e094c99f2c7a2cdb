// Tests of the CUDA device that run on any machine.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hone/error.h>

#include "runtime/device/cuda/cuda_availability.h"
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_comparison.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/jit/cubin_resources.h"
#include "runtime/jit/nvrtc_compiler.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

TEST(CudaAvailability, NoReasonWhenAllIsWell) { EXPECT_EQ(cuda_unavailable_because(cudaSuccess, 13000, 13000), ""); }

TEST(CudaAvailability, SaysThatNoDriverIsInstalled) {
  EXPECT_THAT(cuda_unavailable_because(cudaErrorInsufficientDriver, 0, 13000),
              Names("no CUDA", "driver", "CUDA", "13.0", "580"));
}

TEST(CudaAvailability, NamesBothVersionsOfADriverThatIsTooOld) {
  EXPECT_THAT(cuda_unavailable_because(cudaErrorInsufficientDriver, 12040, 13000),
              Names("supports", "CUDA", "12.4", "built", "13.0", "update", "580"));
  EXPECT_THAT(cuda_unavailable_because(cudaErrorInsufficientDriver, 11080, 12080), Names("version", "525"));
}

TEST(CudaAvailability, SaysWhatHidesDevices) {
  EXPECT_THAT(cuda_unavailable_because(cudaErrorNoDevice, 13000, 13000), Names("CUDA_VISIBLE_DEVICES"));
}

TEST(CudaAvailability, PassesOtherFailuresOn) {
  EXPECT_THAT(cuda_unavailable_because(cudaErrorSystemNotReady, 13000, 13000), Names("cudaErrorSystemNotReady"));
}

TEST(CudaAvailability, AMachineWithoutADeviceSaysWhy) {
  std::string reason;
  if (cuda_device_count(reason) > 0) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_NE(reason, "");
  try {
    make_cuda_device(0);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), Names("cuda:0", reason));
  }
}

/// The kernel that compares memory on a GPU, compiled for and run on the host device.
class CudaComparisonTest : public testing::Test {
 protected:
  /// An array that is the pattern over and over, but for the bytes at `changed`.
  RepeatedBytes run(std::size_t bytes, std::size_t period, const std::vector<std::size_t>& changed) {
    std::vector<std::byte>& pattern = patterns_.emplace_back(period);
    for (std::size_t i = 0; i < period; ++i) pattern[i] = static_cast<std::byte>(i * 7 + 1);
    std::vector<std::uint8_t> found(bytes);
    for (std::size_t i = 0; i < bytes; ++i) found[i] = std::to_integer<std::uint8_t>(pattern[i % period]);
    for (const std::size_t at : changed) found[at] ^= 0x40;
    memory_.emplace_back(device_, found);
    memory_.emplace_back(device_, pattern);
    return {.found = memory_[memory_.size() - 2].as<std::byte>(),
            .bytes = bytes,
            .expected = pattern,
            .expected_on_device = memory_.back().as<std::byte>()};
  }

  std::shared_ptr<Device> device_ = Device::open("host");
  std::deque<std::vector<std::byte>> patterns_;
  std::deque<DeviceBuffer> memory_;
};

TEST_F(CudaComparisonTest, FindsTheFirstDifferenceOfEachRunAsTheHostDoes) {
  const std::vector<RepeatedBytes> runs{run(100000, 1, {}),         run(100000, 1, {99999}),
                                        run(70001, 977, {70000, 3}), run(1, 5, {0}),
                                        run(5, 977, {4}),            run(100000, 1, {50001, 50000, 99000})};
  CudaComparison comparison(*device_, 0);
  const auto found = comparison.first_differences(runs, nullptr);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(*found, testing::ElementsAre(100000, 99999, 3, 0, 4, 50000));
  EXPECT_EQ(*found, device_->first_differences(runs, nullptr));
}

TEST_F(CudaComparisonTest, IsNotWorthCompilingForFewBytes) {
  const std::vector<RepeatedBytes> runs{run(1000, 1, {})};
  CudaComparison comparison(*device_, 2500);
  EXPECT_FALSE(comparison.first_differences(runs, nullptr));
  EXPECT_FALSE(comparison.first_differences(runs, nullptr));
  EXPECT_TRUE(comparison.first_differences(runs, nullptr));
  EXPECT_TRUE(comparison.first_differences(runs, nullptr));
}

TEST(CudaCheck, SuccessIsSilent) { EXPECT_NO_THROW(check(cudaSuccess, "doing nothing")); }

TEST(CudaCheck, AFailureSaysWhatHappenedAndWhere) {
  try {
    check(cudaErrorInvalidValue, "testing");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("while", "testing", "cudaErrorInvalidValue", "invalid", "argument",
                                    "[cuda_without_gpu_test.cpp"));
  }
}

TEST(CudaCheck, OutOfMemoryHasItsOwnCode) {
  try {
    check(cudaErrorMemoryAllocation, "testing");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
}

TEST(CudaCheck, ACrashedKernelSaysThatTheProcessMustRestart) {
  try {
    check(cudaErrorIllegalAddress, "testing");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Names("compute-sanitizer", "restart"));
  }
}

class CubinImage : public testing::Test {
 protected:
  void SetUp() override {
    const NvrtcCompiler compiler(NvrtcSearch::from_environment());
    if (compiler.identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
    code_ = compiler
                .compile({.name = "k",
                          .source = "extern \"C\" __global__ void __launch_bounds__(256) k(int* p) { "
                                    "__shared__ int s[256]; s[threadIdx.x] = *p; __syncthreads(); *p = s[0]; }",
                          .headers = {},
                          .entries = {"k"}},
                         "sm_90")
                .code;
  }

  std::vector<std::byte> code_;
};

TEST_F(CubinImage, OfTheCompilerIsWhole) { EXPECT_TRUE(is_whole_elf(code_)); }

TEST_F(CubinImage, TellsWhatItsKernelNeeds) {
  const std::optional<Resources> resources = cubin_resources(code_, "k");
  ASSERT_TRUE(resources);
  EXPECT_GT(resources->registers, 0);
  EXPECT_EQ(resources->static_smem_bytes, 1024);
  EXPECT_EQ(resources->local_bytes, 0);
  EXPECT_EQ(resources->max_threads_per_block, 256);
  EXPECT_FALSE(cubin_resources(code_, "another"));
}

TEST_F(CubinImage, CutAnywhereIsNotWhole) {
  for (std::size_t bytes = 0; bytes < code_.size(); ++bytes) {
    ASSERT_FALSE(is_whole_elf(std::span(code_).first(bytes))) << bytes;
  }
}

TEST_F(CubinImage, WithHeadersThatPointOutsideIsNotWhole) {
  constexpr std::size_t kSectionTableOffset = 40;  // e_shoff
  for (const std::uint64_t offset : {std::uint64_t{0} - 1, std::uint64_t{0} - 64, std::uint64_t{code_.size()}}) {
    std::vector<std::byte> damaged = code_;
    std::memcpy(damaged.data() + kSectionTableOffset, &offset, sizeof(offset));
    EXPECT_FALSE(is_whole_elf(damaged));
  }
}

TEST_F(CubinImage, OfSomethingElseIsNotWhole) {
  EXPECT_FALSE(is_whole_elf({}));
  EXPECT_FALSE(is_whole_elf(std::vector<std::byte>(4096)));
}

}  // namespace
}  // namespace hone
