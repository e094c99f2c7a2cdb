// Sessions with shipped winners, on a device that only pretends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "cache/shipped_winners.h"
#include "cache/store.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using testing::IsEmpty;
using testing::SizeIs;

class SessionShipped : public FakeSessionTest {
 protected:
  /// Tunes kSize, ships the winner, and forgets the cache.
  void SetUp() override {
    FakeSessionTest::SetUp();
    device_->script = [this](std::string_view source) {
      return FakeKernel{.us = source == kBest ? 2.0 : 30.0, .is_wrong = is_wrong_ && source == kBest};
    };
    Session(device_, options()).prepare(family_.problem(kSize));
    std::vector<cache::StoredWinner> winners = cache::Store(folder_ / "cache.sqlite").winners();
    ASSERT_THAT(winners, SizeIs(1));
    ship(winners);
    std::filesystem::remove(folder_ / "cache.sqlite");
  }

  void ship(const std::vector<cache::StoredWinner>& winners) const {
    const cache::KeyRecord& key = winners[0].key;
    std::ofstream(file_) << cache::shipped_text({.version = "0.1.0",
                                                 .date = "2026-11-25",
                                                 .device = key.device,
                                                 .compiler = key.toolchain.compiler,
                                                 .driver = key.toolchain.driver},
                                                winners);
  }

  SessionOptions with_shipped(MissPolicy on_miss) {
    SessionOptions with = options(on_miss);
    with.shipped_winners = {folder_ / "none.winners", file_};
    with.report_cache_failure = [this](std::string_view text) { reports_.emplace_back(text); };
    return with;
  }

  cache::Store store() const { return cache::Store(folder_ / "cache.sqlite"); }

  static constexpr std::string_view kBest = "threads=256 work=4 finish=alone";
  std::filesystem::path file_ = folder_ / "gpu.winners";
  bool is_wrong_ = false;
  std::vector<std::string> reports_;
};

TEST_F(SessionShipped, ServeWithOneCompileAndCountAsTuned) {
  for (const MissPolicy on_miss : {MissPolicy::error, MissPolicy::heuristic, MissPolicy::tune}) {
    std::filesystem::remove(folder_ / "cache.sqlite");
    const int compiles = device_->compiles();
    Session session(device_, with_shipped(on_miss));
    const Choice choice = launch(session);
    EXPECT_EQ(choice.source, ChoiceSource::shipped);
    EXPECT_TRUE(choice.winner->tuned);
    EXPECT_EQ(choice.winner->loan, Loan::none);
    EXPECT_THAT(choice.winner->shipped, Names("Fake GPU", "2026-11-25"));
    EXPECT_EQ(family_.space().to_string(choice.winner->candidate.policy), kBest);
    EXPECT_EQ(device_->compiles(), compiles + 1);
    EXPECT_EQ(session.counters().tunings, 0u);
    EXPECT_EQ(launch(session).source, ChoiceSource::memory);
    EXPECT_EQ(session.counters().shipped, 1u);
  }
  EXPECT_THAT(store().misses(), IsEmpty());
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(SessionShipped, AreStoredWithTheirCodeAndOriginForTheirClass) {
  Session(device_, with_shipped(MissPolicy::heuristic)).prepare(family_.problem(kSize));
  const std::vector<cache::StoredWinner> winners = store().winners();
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_TRUE(cache::is_shipped(winners[0].winner));
  EXPECT_GT(winners[0].binary_bytes, 0);
  const int compiles = device_->compiles();
  Session later(device_, options(MissPolicy::error));
  const Choice choice = launch(later);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(later.counters().shipped, 0u);
  EXPECT_THAT(choice.winner->shipped, Names("Fake GPU"));
  EXPECT_EQ(device_->compiles(), compiles);
}

TEST_F(SessionShipped, AreReplacedByATuning) {
  Session session(device_, with_shipped(MissPolicy::heuristic));
  session.prepare(family_.problem(kSize));
  session.tune(family_.problem(kSize), {.budget = std::chrono::minutes(1)});
  const std::vector<cache::StoredWinner> winners = store().winners();
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_FALSE(cache::is_shipped(winners[0].winner));
  EXPECT_EQ(launch(session).winner->shipped, "");
}

TEST_F(SessionShipped, OneThatDoesNotVerifyIsDroppedAndReportedOnce) {
  is_wrong_ = true;
  Session session(device_, with_shipped(MissPolicy::error));
  for (int call = 0; call < 3; ++call)
    EXPECT_THROW(session.prepare(family_.problem(kSize)), Error);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_THAT(reports_[0], Names("total", std::string(kBest)));
  EXPECT_THAT(store().winners(), IsEmpty());
  is_wrong_ = false;
}

TEST_F(SessionShipped, OneOfMoreBlocksThanAGridHasIsReportedWithThem) {
  std::ifstream shipped(file_);
  std::string text{std::istreambuf_iterator<char>(shipped), {}};
  text = std::regex_replace(text, std::regex("blocks=[0-9]+"), "blocks=9999999999999");
  std::ofstream(file_) << text;
  Session session(device_, with_shipped(MissPolicy::error));
  EXPECT_THROW(session.prepare(family_.problem(kSize)), Error);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_THAT(reports_[0], Names("9999999999999 blocks", "2147483647"));
}

TEST_F(SessionShipped, AreLentToOtherAlignments) {
  Problem problem = family_.problem(kSize);
  problem.alignment = 4;
  {
    Session session(device_, with_shipped(MissPolicy::heuristic));
    const Choice choice = session.prepare(problem);
    EXPECT_EQ(choice.source, ChoiceSource::nearest);
    EXPECT_EQ(choice.winner->loan, Loan::alignment);
    EXPECT_THAT(choice.winner->lender, Names("shipped"));
  }
  EXPECT_THAT(store().misses(), SizeIs(1));
}

TEST_F(SessionShipped, OnesOfOtherSourcesAreLentAndMissed) {
  std::ifstream in(file_);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.insert(text.find("]\n"), "0");
  std::ofstream(file_) << text;
  {
    Session session(device_, with_shipped(MissPolicy::heuristic));
    const Choice choice = launch(session);
    EXPECT_EQ(choice.source, ChoiceSource::nearest);
    EXPECT_EQ(choice.winner->loan, Loan::version);
    EXPECT_FALSE(choice.winner->tuned);
  }
  EXPECT_THAT(store().misses(), SizeIs(1));
}

TEST_F(SessionShipped, DamagedRowsAreMissesCountedAndReportedOnce) {
  std::ifstream in(file_);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t policy = text.find(kBest), threads = text.find(" threads=256:");
  ASSERT_NE(policy, std::string::npos);
  ASSERT_NE(threads, std::string::npos);
  const std::array<std::string, 3> damaged{std::string(text).replace(policy, kBest.size(), "bogus"),
                                           std::string(text).replace(policy, 11, "threads=25x"),
                                           std::string(text).replace(threads, 12, " threads=999999")};
  const std::array<const char*, 3> found{"bogus", "threads=25x", "999999"};
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    std::ofstream(file_) << damaged[i];
    std::filesystem::remove(folder_ / "cache.sqlite");
    reports_.clear();
    Problem other = family_.problem(kSize);
    other.alignment = 4;
    Session session(device_, with_shipped(MissPolicy::heuristic));
    EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
    session.prepare(other);
    EXPECT_EQ(session.counters().cache_rejects, 1u) << found[i];
    ASSERT_THAT(reports_, SizeIs(1)) << found[i];
    EXPECT_THAT(reports_[0], Names("Fake GPU", "total", found[i]));
  }
}

TEST_F(SessionShipped, DamagedRowsThatWouldBeLentAreReported) {
  std::ifstream in(file_);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find(kBest), kBest.size(), "bogus");
  std::ofstream(file_) << text;
  Problem other = family_.problem(kSize);
  other.alignment = 4;
  Session session(device_, with_shipped(MissPolicy::heuristic));
  EXPECT_EQ(session.prepare(other).source, ChoiceSource::heuristic);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_THAT(reports_[0], Names("'bogus' stands where"));
  EXPECT_EQ(session.counters().cache_rejects, 1u);
}

}  // namespace
}  // namespace hone
