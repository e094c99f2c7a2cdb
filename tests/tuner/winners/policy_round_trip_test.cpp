// Every policy of every built-in family is the same one after text, a row of the cache, and the JSON of the commands.
#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include <hone/kernel_family.h>

#include "cache/store.h"
#include "tests/runtime/support/every_family.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;
using testing::isolated_environment;
using testing::run_hone;

std::map<std::string, const KernelFamily*> families() {
  std::map<std::string, const KernelFamily*> families;
  for (const Problem& problem : sample_problems()) families.emplace(problem.family->name(), problem.family);
  return families;
}

/// Policies that have, together, every value of every parameter, and every conditional parameter once absent.
std::vector<Policy> with_every_value(const ParameterSpace& space) {
  std::vector<Policy> chosen;
  std::map<std::pair<std::size_t, std::int32_t>, bool> seen;
  for (const Policy& policy : space.all()) {
    bool is_new = false;
    for (std::size_t i = 0; i < space.parameters().size(); ++i)
      is_new |= seen.emplace(std::pair(i, policy[static_cast<int>(i)]), true).second;
    if (is_new) chosen.push_back(policy);
  }
  return chosen;
}

cache::CandidateRecord record_of(const std::string& policy) {
  cache::CandidateRecord record;
  record.policy = policy;
  record.max_blocks = 1;
  record.block_threads = 128;
  return record;
}

class PolicyRoundTrip : public ::testing::Test {
 protected:
  /// A winner for each policy of `texts`, in classes of their own; the tuning of the first has all as its trials.
  void store(const std::string& family, const std::vector<std::string>& texts) const {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      cache::Publication publication;
      publication.key.device = {"cuda", "Invented GPU", "sm_90", "name=Invented GPU;", 100, 2048, 3000};
      publication.key.toolchain = {"nvrtc 13.0.88", "13.0", "0123456789abcdef0123456789abcdef"};
      publication.key.problem = {family, "sum", "f32", "fast", "stream", 16, {}};
      const auto n = static_cast<std::int64_t>(i + 1);
      publication.key.problem.sizes[0] = {n, n};
      publication.winner.candidate = record_of(texts[i]);
      publication.winner.tuned = i == 0;
      publication.winner.tuned_extents = {i == 0 ? n : 0, i == 0 ? 1 : 0, i == 0 ? 1 : 0};
      publication.winner.median_us = publication.winner.spread_us = i == 0 ? 1 : 0;
      publication.binary = {"cubin", "sm_90", std::vector<std::byte>(8)};
      if (i == 0) {
        publication.tuning.emplace();
        for (const std::string& text : texts) {
          cache::TrialRecord trial;
          trial.candidate = record_of(text);
          trial.verdict = "ok";
          trial.median_us = trial.spread_us = 1;
          trial.samples = 20;
          publication.tuning->trials.push_back(trial);
        }
      }
      cache::Store(path_).publish(publication);
    }
  }

  std::string output(std::vector<std::string> words, const std::filesystem::path& path) const {
    const testing::CommandRun run = run_hone(words, isolated_environment(path));
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "cache.sqlite", copy_ = folder_ / "copy.sqlite";
};

TEST_F(PolicyRoundTrip, EveryPolicyIsWhatItsTextSays) {
  for (const auto& [name, family] : families()) {
    const ParameterSpace& space = family->space();
    const std::vector<Policy> all = space.all();
    EXPECT_FALSE(all.empty()) << name;
    for (const Policy& policy : all) EXPECT_EQ(space.parse(space.to_string(policy)), policy) << space.to_string(policy);
  }
}

TEST_F(PolicyRoundTrip, EveryValueSurvivesTheCacheAndTheJsonOfTheCommands) {
  for (const auto& [name, family] : families()) {
    const ParameterSpace& space = family->space();
    const std::vector<Policy> policies = with_every_value(space);
    std::vector<std::string> texts;
    for (const Policy& policy : policies) texts.push_back(space.to_string(policy));
    std::filesystem::remove(path_);
    std::filesystem::remove(copy_);
    store(name, texts);
    const auto policy_of = [&](const Json& text) { return space.parse(text.get<std::string>()).value_or(Policy{}); };

    const std::vector<cache::StoredWinner> stored = cache::Store(path_).winners();
    ASSERT_EQ(stored.size(), policies.size()) << name;
    for (const cache::StoredWinner& row : stored)
      EXPECT_EQ(space.parse(row.winner.candidate.policy),
                policies[static_cast<std::size_t>(row.key.problem.sizes[0].first - 1)])
          << row.winner.candidate.policy;

    const Json explained = Json::parse(output({"explain", "1", "--json"}, path_))["winners"].at(0)["candidates"];
    std::vector<std::string> explained_texts;
    for (const Json& candidate : explained) explained_texts.push_back(candidate["policy"]);
    EXPECT_THAT(explained_texts, ::testing::UnorderedElementsAreArray(texts)) << name;

    std::ofstream(folder_ / "export.jsonl") << output({"cache", "export"}, path_);
    output({"cache", "import", (folder_ / "export.jsonl").string()}, copy_);
    for (const std::filesystem::path& path : {path_, copy_}) {
      const Json winners = Json::parse(output({"inspect", "--json"}, path))["winners"];
      ASSERT_EQ(winners.size(), policies.size()) << name << " in " << path;
      for (const Json& winner : winners)
        EXPECT_EQ(policy_of(winner["candidate"]["policy"]),
                  policies[winner["problem"]["sizes"][0]["first"].get<std::size_t>() - 1])
            << winner["candidate"]["policy"];
    }
  }
}

}  // namespace
}  // namespace hone::tuner
