// A user's kernel that leaves its arrays is refused when a tuning verifies it, though its results are right.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <hone/kernel_family.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class SumsVerifier final : public Verifier {
 public:
  std::vector<std::byte> input_pattern(const Problem&, int, std::string_view) const override {
    const std::array<float, 7> pattern{1, 2, 3, 4, 5, 6, 7};
    const auto bytes = std::as_bytes(std::span(pattern));
    return {bytes.begin(), bytes.end()};
  }

  std::string verify(const Problem& problem, const Candidate&, ArrayBytes, ArrayBytes outputs) const override {
    for (std::size_t i = 0; i < static_cast<std::size_t>(problem.extents[0]); ++i) {
      float found;
      std::memcpy(&found, outputs[0].data() + 4 * i, 4);
      if (found != static_cast<float>(2 * (1 + i % 7))) return "element " + std::to_string(i) + " is wrong";
    }
    return "";
  }
};

/// out[i] = x[i] + y[i], in whole tiles: with or without a guard for the last one.
class Sums final : public KernelFamily {
 public:
  explicit Sums(const std::string& guard)
      : sources_{{{"sums.cuh",
                   "template <unsigned kThreads, unsigned kUnroll>\n"
                   "__device__ void sums(const float* x, const float* y, float* out, unsigned n) {\n"
                   "  constexpr unsigned kTile = kThreads * kUnroll;\n"
                   "  for (unsigned tile = blockIdx.x * kTile; tile < n; tile += gridDim.x * kTile) {\n"
                   "    for (unsigned u = 0; u < kUnroll; ++u) {\n"
                   "      const unsigned i = tile + u * kThreads + threadIdx.x;\n"
                   "      " + guard + " out[i] = x[i] + y[i];\n"
                   "    }\n  }\n}\n"}}} {}

  std::string_view name() const override { return "sums"; }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return space_; }
  std::span<const std::string_view> operations() const override { return operations_; }
  std::span<const SourceFile> sources() const override { return sources_; }
  std::string refuse(const Problem& problem) const override { return problem.extents[0] < 0 ? "negative" : ""; }
  Reason is_valid(const ProblemClass&, const Policy&, const DeviceFacts&) const override { return ""; }

  Unit unit(const ProblemClass&, const Policy& policy) const override {
    return {.name = "sums",
            .source = "#include \"sums.cuh\"\nextern \"C\" __global__ void sums_f32(const float* x, const float* y, "
                      "float* out, unsigned n) {\n  sums<" + std::to_string(policy[0]) + ", " +
                      std::to_string(policy[1]) + ">(x, y, out, n);\n}\n",
            .headers = {},
            .entries = {"sums_f32"}};
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const std::int64_t tile = policy[0] * policy[1];
    return {.block_threads = policy[0],
            .tiles = std::max<std::int64_t>(1, (problem.extents[0] + tile - 1) / tile),
            .bytes_in_flight_per_block = tile * 8};
  }

  std::int64_t bytes_moved(const Problem& problem) const override { return problem.extents[0] * 12; }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
              LaunchList& launches) const override {
    Launch& launch = launches.add();
    launch.grid.x =
        static_cast<unsigned>(std::min(candidate.geometry.max_blocks, shape(problem, candidate.policy).tiles));
    launch.block.x = static_cast<unsigned>(candidate.policy[0]);
    for (void* buffer : buffers) launch.arguments.push(buffer);
    launch.arguments.push(static_cast<unsigned>(problem.extents[0]));
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const std::int64_t n = problem.extents[0];
    return {{"x", true, DType::f32, n}, {"y", true, DType::f32, n}, {"out", false, DType::f32, n}};
  }

  const Verifier& verifier() const override { return verifier_; }

 private:
  ParameterSpace space_{{{"block_threads", {128, 256}}, {"unroll", {1, 4}}}};
  std::array<std::string_view, 1> operations_{"sum"};
  std::array<SourceFile, 1> sources_;
  SumsVerifier verifier_;
};

class UnguardedKernel : public DeviceTest {};

TEST_F(UnguardedKernel, IsRefusedAtEverySize) {
  const Sums unguarded("");
  for (const std::int64_t n : {std::int64_t{1'000'000}, std::int64_t{1} << 16, std::int64_t{100}}) {
    Session session(device_, {.on_miss = MissPolicy::tune, .cache_path = {}});
    const Problem problem{.family = &unguarded, .extents = {n, 1, 1}};
    const Tuning tuning = session.tune(problem, {.budget = std::chrono::seconds(5)});
    EXPECT_FALSE(tuning.winner) << n;
    for (const Trial& trial : tuning.trials) {
      if (trial.verdict == Verdict::wrong) {
        EXPECT_THAT(trial.reason.detail, Names("'out'"));
      }
    }
  }
}

TEST_F(UnguardedKernel, IsAcceptedWithItsGuard) {
  const Sums guarded("if (i < n)");
  Session session(device_, {.on_miss = MissPolicy::tune, .cache_path = {}});
  const Problem problem{.family = &guarded, .extents = {100'000, 1, 1}};
  EXPECT_TRUE(session.tune(problem, {.budget = std::chrono::seconds(5)}).winner);
}

}  // namespace
}  // namespace hone
