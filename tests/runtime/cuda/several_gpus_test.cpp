// One process with a session for each of two GPUs.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include <hone/hone.h>

#include "tests/runtime/cuda/cuda_test.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

constexpr std::int64_t kRows = 300, kColumns = 1000, kCount = kRows * kColumns;

class SeveralGpus : public CudaTest {
 protected:
  /// A GPU, the same elements on each, and a session that tunes nothing.
  struct Gpu {
    std::shared_ptr<Device> device;
    std::unique_ptr<Session> session;
    DeviceBuffer in, out;
  };

  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    std::string reason;
    if (cuda_device_count(reason) < 2) GTEST_SKIP() << "there is one CUDA device";
    for (const int ordinal : {0, 1}) {
      Gpu& gpu = gpus_[static_cast<std::size_t>(ordinal)];
      gpu.device = make_cuda_device(ordinal);
      gpu.session = std::make_unique<Session>(gpu.device, options());
      gpu.in = uploaded(gpu.device);
      gpu.out = DeviceBuffer(gpu.device, kCount * sizeof(float));
    }
  }

  static SessionOptions options(bool validates = false) {
    return {.on_miss = MissPolicy::heuristic, .cache_path = {}, .validate_pointers = validates};
  }

  static DeviceBuffer uploaded(const std::shared_ptr<Device>& device) {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.37f * static_cast<float>(i % 101) - 11;
    return DeviceBuffer(device, values);
  }

  /// Returns a GPU's name in messages.
  static std::string words_of(const Gpu& gpu) {
    return gpu.device->facts().name + " (" + std::string(gpu.device->name()) + ")";
  }

  std::array<Gpu, 2> gpus_;
};

/// The sum of all elements, the largest of each row, and its softmax.
std::vector<float> results_of(Session& session, const float* in, Stream stream) {
  constexpr std::size_t kValues = 1 + kRows + kCount;
  const DeviceBuffer out(session.device(), kValues * sizeof(float));
  auto* const results = out.as<float>();
  tuned_reduce(session, sum, in, kCount, results, stream);
  tuned_reduce_rows(session, max, in, {.rows = kRows, .columns = kColumns}, results + 1, stream);
  tuned_softmax(session, in, SoftmaxShape::rows(kRows, kColumns), results + 1 + kRows, stream);
  return out.to_host<float>(stream);
}

TEST_F(SeveralGpus, EachWithASessionServeEightThreadsAtOnce) {
  constexpr int kThreads = 8, kRounds = 20;
  std::array<std::array<std::vector<std::vector<float>>, 2>, kThreads> found;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::array<Stream, 2> streams{};
        for (std::size_t g = 0; g < 2; ++g) streams[g] = gpus_[g].device->create_stream();
        for (std::size_t round = 0; round < kRounds; ++round) {
          const std::size_t g = (t + round) % 2;
          found[t][g].push_back(results_of(*gpus_[g].session, gpus_[g].in.as<float>(), streams[g]));
        }
        for (std::size_t g = 0; g < 2; ++g) gpus_[g].device->destroy_stream(streams[g]);
      });
  }
  for (std::size_t g = 0; g < 2; ++g) {
    const std::vector<float> alone = results_of(*gpus_[g].session, gpus_[g].in.as<float>(), nullptr);
    EXPECT_FLOAT_EQ(alone[1], 26);
    EXPECT_NEAR(alone[1 + kRows] / alone[2 + kRows], std::exp(-0.37f), 1e-5);
    for (std::size_t t = 0; t < kThreads; ++t) {
      EXPECT_EQ(found[t][g].size(), kRounds / 2);
      for (const std::vector<float>& each : found[t][g])
        EXPECT_EQ(std::memcmp(each.data(), alone.data(), alone.size() * sizeof(float)), 0)
            << words_of(gpus_[g]) << ", thread " << t;
    }
  }
}

class PointersOfAnotherGpu : public SeveralGpus {
 protected:
  using Calls = std::map<std::string, std::function<void()>>;

  /// Calls of a session, each by the name of the array that it passes as `far`, or as its own.
  Calls calls(Session& session, const Gpu& own, void* far) {
    auto* const in = own.in.as<float>();
    auto* const out = own.out.as<float>();
    auto* const other = static_cast<float*>(far);
    const RowsShape shape{.rows = kRows, .columns = kColumns};
    const auto rows = SoftmaxShape::rows(kRows, kColumns);
    return {
        {"'in' of a reduction", [=, &session] { tuned_reduce(session, sum, other, kCount, out, nullptr); }},
        {"'out' of a reduction", [=, &session] { tuned_reduce(session, sum, in, kCount, other, nullptr); }},
        {"'b' of a dot product", [=, &session] { tuned_dot(session, in, other, kCount, out, nullptr); }},
        {"'in' of rows", [=, &session] { tuned_reduce_rows(session, max, other, shape, out, nullptr); }},
        {"'out' of rows", [=, &session] { tuned_reduce_rows(session, max, in, shape, other, nullptr); }},
        {"'in' of a softmax", [=, &session] { tuned_softmax(session, other, rows, out, nullptr); }},
        {"'out' of a softmax", [=, &session] { tuned_softmax(session, in, rows, other, nullptr); }},
        {"'in' of a transpose", [=, &session] { tuned_transpose(session, other, kRows, kColumns, out, nullptr); }},
        {"'out' of a copy", [=, &session] { tuned_copy(session, in, kCount, other, nullptr); }},
        {"'in' of a plan",
         [=, &session] {
           const Problem problem = reduce_problem({}, kCount);
           void* const buffers[] = {other, out};
           const Plan plan = session.make_plan(problem);
           plan.launch(problem, buffers, nullptr);
           session.device()->synchronize(nullptr);
         }},
    };
  }

  /// A session of GPU 1 validates, and is given memory of GPU 0.
  void expect_refused() {
    Session session(gpus_[1].device, options(true));
    for (const auto& [name, call] : calls(session, gpus_[1], gpus_[0].out.data())) {
      const std::string array = name.substr(0, name.find(" of"));
      try {
        call();
        ADD_FAILURE() << name << ": nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << name;
        EXPECT_THAT(error.what(), Names(array, "lies on " + words_of(gpus_[0]), words_of(gpus_[1]), "copy")) << name;
      }
    }
  }
};

TEST_F(PointersOfAnotherGpu, AreRefusedWithTheNamesOfBoth) {
  expect_refused();
  Session session(gpus_[1].device, options(true));
  const DeviceBuffer near = uploaded(gpus_[1].device);
  for (const auto& [name, call] : calls(session, gpus_[1], near.data())) {
    EXPECT_NO_THROW(call()) << name;
    gpus_[1].device->synchronize(nullptr);
  }
}

TEST_F(PointersOfAnotherGpu, AreRefusedThoughPeersHaveAccess) {
  int can = 0;
  ASSERT_EQ(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
  if (can == 0) GTEST_SKIP() << "cuda:1 has no access to the memory of cuda:0";
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  expect_refused();
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(PointersOfAnotherGpu, AreNoneIfManagedOrPageLocked) {
  void* managed = nullptr;
  ASSERT_EQ(cudaMallocManaged(&managed, kCount * sizeof(float), cudaMemAttachGlobal), cudaSuccess);
  std::fill_n(static_cast<float*>(managed), kCount, 1.0f);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  for (const Gpu& gpu : gpus_) {
    Session session(gpu.device, options(true));
    EXPECT_EQ(tuned_reduce_and_wait(session, sum, static_cast<const float*>(managed), kCount, nullptr),
              static_cast<float>(kCount));
    EXPECT_EQ(gpu.device->memory_kind(pinned), MemoryKind::host);
  }
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

}  // namespace
}  // namespace hone
