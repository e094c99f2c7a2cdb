// hone transfer, in-process, with the trials of invented H100s and H200s.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/sdk/known_gpus.h>
#include <hone/sdk/source_digest.h>

#include "cache/store.h"
#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using test::Names;
using testing::CommandRun;
using testing::run_hone;

constexpr std::size_t kTrials = 6;

class TransferCommand : public ::testing::Test {
 protected:
  /// Policies that are valid and worth measuring on both.
  TransferCommand() {
    for (const Policy& policy : problem_.family->space().all()) {
      const auto is_offered = [&](const DeviceFacts& facts) {
        return problem_.family->is_valid(problem_, policy, facts).empty() &&
               problem_.family->prune(problem_, policy, facts).empty();
      };
      const WorkShape shape = problem_.family->shape(problem_, policy);
      if (shape.one_block || shape.cluster_blocks > 1 || shape.one_block_per_tile) continue;  // need grids of their own
      if (policies_.size() < kTrials && is_offered(h100_) && is_offered(h200_)) policies_.push_back(policy);
    }
  }

  cache::CandidateRecord candidate(const DeviceFacts& facts, const Policy& policy) const {
    const int threads = problem_.family->shape(problem_, policy).block_threads;
    return {.policy = problem_.family->space().to_string(policy),
            .max_blocks = facts.sm_count,
            .block_threads = threads,
            .registers = 32,
            .max_threads_per_block = 1024,
            .resident_blocks = 2048 / std::max(threads, 64)};
  }

  /// The policy of the number `fastest` takes 50 µs, the others 60 and more.
  void tune(const std::filesystem::path& file, const DeviceFacts& facts, std::size_t fastest) const {
    cache::Publication publication;
    publication.key.device = {facts.kind, facts.name, facts.architecture, tuning_identity(facts), facts.sm_count,
                              facts.max_threads_per_sm, peak_bandwidth_gbps(facts)};
    publication.key.toolchain = {"nvrtc:1", "13.0", source_digest(problem_, facts)};
    publication.key.problem = {"reduce", "sum", "f32", "fast", "stream", 16, {{{kSize, kSize}, {1, 1}, {1, 1}}}};
    publication.binary = {"cubin", facts.architecture, {std::byte{1}}};
    publication.tuning.emplace();
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      const double us = i == fastest ? 50 : 60 + static_cast<double>(i);
      publication.tuning->trials.push_back(
          {.candidate = candidate(facts, policies_[i]), .median_us = us, .samples = 9, .verdict = "ok", .reason = {}});
    }
    publication.winner = {.candidate = candidate(facts, policies_[fastest]),
                          .tuned = true,
                          .tuned_extents = {kSize, 1, 1},
                          .bytes_moved = 4 * kSize,
                          .median_us = 50};
    cache::Store(file).publish(publication);
  }

  static constexpr std::int64_t kSize = std::int64_t{1} << 24;
  const Problem problem_ = reduce_problem(ReduceOp::sum, DType::f32, kSize);
  const DeviceFacts h100_ = find_known_gpu("h100")->facts, h200_ = find_known_gpu("h200")->facts;
  std::vector<Policy> policies_;
  testing::TemporaryFolder folder_;
  const std::string from_ = (folder_ / "h100.sqlite").string(), native_ = (folder_ / "h200.sqlite").string();
};

TEST_F(TransferCommand, IsJudgedByTheTrialsOfTheOtherGpu) {
  ASSERT_EQ(policies_.size(), kTrials);
  tune(from_, h100_, 1);
  tune(native_, h200_, 1);
  const CommandRun run = run_hone({"transfer", "--from", from_, "--judge", native_, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result.at("gpu").at("name"), h200_.name);
  EXPECT_EQ(result.at("stored"), 0);
  ASSERT_EQ(result.at("winners").size(), 1u);
  EXPECT_EQ(result.at("winners")[0].at("policy"), problem_.family->space().to_string(policies_[1]));
  EXPECT_EQ(result.at("winners")[0].at("regret"), 0);
  EXPECT_THAT(run_hone({"transfer", "--from", from_, "--judge", native_}).out, Names("judged 1, not judged 0", "mean"));
}

TEST_F(TransferCommand, ARegretIsWhatTheChoiceLosesThere) {
  tune(from_, h100_, 0);
  tune(native_, h200_, 3);
  const CommandRun run = run_hone({"transfer", "--from", from_, "--judge", native_, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NEAR(json::parse(run.out).at("winners")[0].at("regret").get<double>(), 60.0 / 50 - 1, 1e-9);
}

TEST_F(TransferCommand, StoresLabelledUntunedWinnersWithCode) {
  if (make_absent_gpu(h200_)->compiler_identity().empty()) GTEST_SKIP() << "there is no NVRTC";
  tune(from_, h100_, 1);
  const CommandRun run = run_hone({"transfer", "--from", from_, "--gpu", "h200", "--cache", native_});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::vector<cache::StoredWinner> winners = cache::Store(native_).winners();
  ASSERT_EQ(winners.size(), 1u);
  EXPECT_FALSE(winners[0].winner.tuned);
  EXPECT_GT(winners[0].binary_bytes, 0);
  EXPECT_EQ(winners[0].key.device.identity, tuning_identity(h200_));
  EXPECT_EQ(winners[0].winner.candidate.policy, problem_.family->space().to_string(policies_[1]));
  EXPECT_THAT(winners[0].winner.lender, Names("transfer: reduce sum f32", h100_.name));
  EXPECT_THAT(run.err, Names("[1/1]", "sum f32"));

  const CommandRun again =
      run_hone({"transfer", "--from", from_, "--gpu", "h200", "--cache", native_, "--json", "--quiet"});
  const json result = json::parse(again.out);
  EXPECT_EQ(result.at("stored"), 0);
  EXPECT_EQ(result.at("kept"), 1) << "it was stored before it was interrupted";
  EXPECT_EQ(cache::Store(native_).winners()[0].id, winners[0].id);
}

TEST_F(TransferCommand, TrialsOfDamagedWinnersAreNotSaidToBeMissing) {
  tune(from_, h100_, 0);
  tune(native_, h200_, 0);
  cache::sql(from_, "UPDATE winner SET registers = registers + 1");
  const CommandRun run = run_hone({"transfer", "--from", from_, "--judge", native_});
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, Names(from_, "its one winner is damaged"));
}

TEST_F(TransferCommand, RefusesWhatSaysNothing) {
  tune(from_, h100_, 0);
  DeviceFacts host = h100_;
  host.kind = "host";
  host.memory_bus_bits = 0;
  tune(native_, host, 0);
  const auto refused = [](const std::vector<std::string>& words, int code, const std::string& named) {
    const CommandRun run = run_hone(words);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_THAT(run.err, Names(named));
  };
  refused({"transfer", "--gpu", "h200"}, 2, "--from");
  refused({"transfer", "--from", from_}, 2, "--gpu");
  refused({"transfer", "--from", from_, "--gpu", "h999"}, 2, "h200");
  refused({"transfer", "--from", from_, "--judge", native_}, 2, "kind");
  refused({"transfer", "--from", from_, "--gpu", "h200", "--judge", native_}, 2, "--judge");
  refused({"transfer", "--from", (folder_ / "none.sqlite").string(), "--judge", from_}, 4, "no such file");
  testing::write_file(folder_ / "other.sqlite", "this is no database, and much longer than a byte");
  refused({"transfer", "--from", (folder_ / "other.sqlite").string(), "--judge", from_}, 5, "other.sqlite");
}

}  // namespace
}  // namespace hone::tuner
