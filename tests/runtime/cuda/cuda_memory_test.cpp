#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hone/error.h>

#include "tests/runtime/cuda/cuda_test.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using testing::Each;

using CudaMemoryTest = CudaTest;

constexpr unsigned long long kLongNs = 200'000'000;

TEST_F(CudaMemoryTest, MemoryIsAligned) {
  for (const std::size_t bytes : {0, 1, 3, 255, 257, 1 << 20, 10'000'001}) {
    const Array<char> memory = allocate<char>(bytes);
    ASSERT_NE(memory.get(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 256, 0U) << bytes;
  }
}

TEST_F(CudaMemoryTest, FreeingNothingIsFine) { device_->deallocate(nullptr); }

TEST_F(CudaMemoryTest, CopiesAndFills) {
  constexpr std::size_t kCount = 100'003;
  std::vector<int> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<int>(i * 7919);
  const Array<int> first = allocate<int>(kCount);
  const Array<int> second = allocate<int>(kCount);
  device_->copy_to_device(first.get(), values.data(), kCount * sizeof(int), stream_);
  device_->fill_bytes(second.get(), 0xAB, kCount * sizeof(int), stream_);
  device_->copy_on_device(second.get() + 1, first.get() + 1, (kCount - 2) * sizeof(int), stream_);

  const std::vector<int> copied = fetch(second, kCount);
  EXPECT_EQ(copied.front(), static_cast<int>(0xABABABAB));
  EXPECT_EQ(copied.back(), static_cast<int>(0xABABABAB));
  EXPECT_TRUE(std::equal(copied.begin() + 1, copied.end() - 1, values.begin() + 1));
}

TEST_F(CudaMemoryTest, CopiesOfNothingTouchNothing) {
  device_->copy_to_device(nullptr, nullptr, 0, stream_);
  device_->copy_to_host(nullptr, nullptr, 0, stream_);
  device_->copy_on_device(nullptr, nullptr, 0, stream_);
  device_->fill_bytes(nullptr, 0, 0, stream_);
  device_->synchronize(stream_);
}

TEST_F(CudaMemoryTest, TooMuchMemorySaysHowMuchAndTheDeviceGoesOn) {
  const auto bytes = static_cast<std::size_t>(device_->facts().memory_bytes) * 2;
  try {
    device_->allocate(bytes);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), Names(std::to_string(bytes), "free"));
  }
  const Array<int> memory = allocate<int>(1000);
  device_->fill_bytes(memory.get(), 0, 4000, stream_);
  EXPECT_THAT(fetch(memory, 1000), Each(0));
}

TEST_F(CudaMemoryTest, FreeMemoryIsWhatTheDriverHasLeft) {
  EXPECT_GT(device_->free_memory_bytes(), 0);
  EXPECT_LT(device_->free_memory_bytes(), device_->facts().memory_bytes) << "the context takes some";
}

TEST_F(CudaMemoryTest, FreedMemoryCanBeHadAgain) {
  const auto bytes = static_cast<std::size_t>(device_->facts().memory_bytes) / 4;
  for (int i = 0; i < 8; ++i) {
    try {
      allocate<char>(bytes);
    } catch (const Error& error) {
      if (i == 0) GTEST_SKIP() << "another program holds the memory: " << error.what();
      FAIL() << error.what();
    }
  }
}

TEST_F(CudaMemoryTest, AllocatingAndFreeingDoNotWaitForOtherStreams) {
  const std::unique_ptr<Module> module = load(kSpinKernel, {"spin"});
  allocate<char>(1 << 20);  // what the driver sets up once is set up now
  device_->launch(module->kernel(0), launch_of(1, 1, kLongNs), stream_);
  allocate<char>(64 << 20);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  device_->synchronize(stream_);
  static_cast<void>(cudaGetLastError());
}

TEST_F(CudaMemoryTest, TellsWhereAPointerPointsTo) {
  const Array<char> memory = allocate<char>(100);
  EXPECT_EQ(device_->memory_kind(memory.get()), MemoryKind::device);
  EXPECT_EQ(device_->memory_kind(memory.get() + 99), MemoryKind::device);

  void* plain = nullptr;
  ASSERT_EQ(cudaMalloc(&plain, 100), cudaSuccess);
  EXPECT_EQ(device_->memory_kind(plain), MemoryKind::device);
  EXPECT_EQ(cudaFree(plain), cudaSuccess);

  void* managed = nullptr;
  ASSERT_EQ(cudaMallocManaged(&managed, 100, cudaMemAttachGlobal), cudaSuccess);
  EXPECT_EQ(device_->memory_kind(managed), MemoryKind::device);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);

  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  EXPECT_EQ(device_->memory_kind(pinned), MemoryKind::host);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);

  const std::vector<char> heap(100);
  EXPECT_EQ(device_->memory_kind(heap.data()), MemoryKind::host);
  EXPECT_EQ(device_->memory_kind(nullptr), MemoryKind::unknown);
}

}  // namespace
}  // namespace hone
