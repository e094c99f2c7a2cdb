// Whole searches through three families, recorded: which candidates are measured, in which order, and what becomes of
// all. A change that is meant to change none of that is checked here; one that is meant to replaces the record.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/search/candidates.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

using namespace std::chrono_literals;

/// FNV-1a: std::hash differs between libraries.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3u;
  return hash >> 8;
}

double noise(std::string_view text) { return static_cast<double>(hash_of(text) % 2001) / 1000 - 1; }

struct Scripted {
  double factor = 3;    ///< of what the model predicts
  double spread = 0.3;  ///< the most that one policy differs from that
  bool has_faults = false;
  double fixed_us = 0;  ///< of every policy, unless 0
};

class RecordedSearches : public testing::Test {
 protected:
  void SetUp() override {
    const unsigned cores = std::thread::hardware_concurrency();
    if (cores < 2 || cores > 16) GTEST_SKIP() << "waves have other sizes with " << cores << " cores";
  }

  /// Searches, and adds what happened to the record.
  Tuning search(std::string_view title, const Problem& problem, const Scripted& scripted, TuningOptions options = {}) {
    std::map<std::string, double> predicted_us;
    const std::vector<Policy> policies = problem.family->space().all();
    for (const RankedPolicy& ranked : rank_policies(device_->facts(), problem, policies, Pruning::off).policies)
      predicted_us[unit_of(problem, ranked.policy).source] = ranked.prediction.us();
    device_->script = [=](std::string_view source) { return behaviour(source, predicted_us, scripted); };

    std::vector<Candidate> measured;
    options.budget = 1min;
    options.on_run = [&](const Candidate& candidate) {
      if (std::find(measured.begin(), measured.end(), candidate) == measured.end()) measured.push_back(candidate);
    };
    BinaryMemo memo;
    Tuning tuning = choose_by_measuring(device_, problem, options, memo);
    record_ += fmt::format("{}\n", title);
    for (const Candidate& candidate : measured) record_ += text(candidate) + '\n';
    std::map<std::string_view, int> verdicts;
    for (const Trial& trial : tuning.trials) ++verdicts[name(trial.verdict)];
    for (const auto& [verdict, count] : verdicts) record_ += fmt::format("{} {}\n", verdict, count);
    const std::string winner = tuning.winner ? text(tuning.trials[*tuning.winner].candidate) : "none";
    record_ += fmt::format("{}; winner {}\n\n", name(tuning.search_end), winner);
    return tuning;
  }

  static FakeKernel behaviour(std::string_view source, const std::map<std::string, double>& predicted_us,
                              const Scripted& scripted) {
    FakeKernel kernel{.us = scripted.fixed_us};
    const auto predicted = predicted_us.find(std::string(source));
    if (kernel.us == 0 && predicted != predicted_us.end())
      kernel.us = scripted.factor * predicted->second * (1 + scripted.spread * noise(source));
    if (!scripted.has_faults) return kernel;
    const std::uint64_t fault = hash_of(source) % 23;
    if (fault == 0) kernel.compile_error = "it does not compile";
    if (fault == 1) kernel.load_error = "it does not load";
    if (fault == 2) kernel.fails_at_launch = 2;
    if (fault == 3) kernel.resident_blocks = 0;
    return kernel;
  }

  /// "256 4 0 × 32": values and blocks.
  static std::string text(const Candidate& candidate) {
    std::string text;
    for (int i = 0; i < candidate.policy.size(); ++i) text += fmt::format("{} ", candidate.policy[i]);
    return text + fmt::format("× {}", candidate.geometry.max_blocks);
  }

  static Problem in_graph(Problem problem) {
    problem.launch_context = LaunchContext::graph;
    return problem;
  }

  void expect_as_recorded(const std::string& file) const {
    std::ifstream stream(std::string(HONE_RECORDS_FOLDER) + "/" + file);
    const std::string recorded((std::istreambuf_iterator<char>(stream)), {});
    EXPECT_EQ(record_, recorded) << "see " << file;
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>(FakeDevice::facts_with_bandwidth());
  std::string record_;
};

TEST_F(RecordedSearches, NumbersAndTwoNames) {
  const TotalFamily family({.space = ParameterSpace({ordinal("threads", {32, 64, 128, 256, 512, 1024}),
                                                     ordinal("work", {1, 2, 4, 8, 16, 32, 64, 128}),
                                                     categorical("finish", {"alone", "joined"})})});
  const Problem problem = in_graph(family.problem(50000));
  search("all work", problem, {});
  const Tuning tuning = search("some do not work", problem, {.has_faults = true});
  search("the model says nothing", problem, {.spread = 0.9});
  search("at the roofline", problem, {.fixed_us = 0.4});
  search("these alone", problem, {},
         {.only = {{{256, 4, 0}, {64}}, {{128, 2, 1}, {32}}, {{128, 2, 0}, {1 << 20}}, {{32, 1, 0}, {8}}}});
  TuningOptions after{.excluded = {{{{256, 4, 0}, {0}}, "its process was killed"}}};
  after.start_from.push_back(tuning.trials.at(tuning.winner.value()).candidate);
  search("after another", problem, {}, after);
  expect_as_recorded("numbers_and_two_names.txt");
}

TEST_F(RecordedSearches, ParametersThatDependOnOthers) {
  const TotalFamily family(
      {.space = ParameterSpace({ordinal("threads", {64, 128, 256, 512}), ordinal("work", {1, 2, 4, 8, 16}),
                                categorical("finish", {"alone", "joined"}),
                                categorical("staging", {"direct", "shared", "bulk", "shifted"}),
                                ordinal("depth", {2, 3, 4, 8}).only_if("staging", {2, 3})})});
  const Problem problem = in_graph(family.problem(100000));
  search("all work", problem, {});
  search("some do not work", problem, {.has_faults = true});
  search("the model is nearly right", problem, {.spread = 0.1});
  expect_as_recorded("parameters_that_depend_on_others.txt");
}

TEST_F(RecordedSearches, ShapesInAStreamOneAfterTheOther) {
  const TotalFamily family(
      {.space = ParameterSpace({ordinal("threads", {32, 64, 128, 256, 512, 1024}),
                                ordinal("work", {1, 2, 4, 8, 16, 32}), categorical("finish", {"alone", "joined"})}),
       .most_threads = 512,
       .alone_is_one_block = true,
       .extent_names = {"rows", "columns"}});
  const Scripted scripted{.factor = 5, .spread = 0.5};
  const Tuning first = search("the first shape", family.problem(300, 700), scripted);
  TuningOptions options{.start_from = {first.trials.at(first.winner.value()).candidate}};
  for (const Trial& trial : first.trials)
    if (trial.samples > 0) options.nearby.push_back(trial);
  search("a near shape", family.problem(600, 700), scripted, options);
  search("a near shape, with another pattern", family.problem(600, 600), {.factor = 4, .spread = 0.6}, options);
  expect_as_recorded("shapes_one_after_the_other.txt");
}

}  // namespace
}  // namespace hone
