#include "cache/maintenance/entry.h"

#include <functional>
#include <limits>

#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

Entry sample() { return entry_of(sample_publication(), 1'700'000'000); }

TEST(CacheEntry, VersionsAreOrderedAsPeopleDo) {
  const std::vector<std::string> ascending{"", "9.2", "13", "13.0", "13.0.88", "13.1", "570", "570.1", "570.10", "r1"};
  for (std::size_t a = 0; a < ascending.size(); ++a) {
    for (std::size_t b = 0; b < ascending.size(); ++b) {
      const int order = compare_versions(ascending[a], ascending[b]);
      EXPECT_EQ(order < 0, a < b) << ascending[a] << " and " << ascending[b];
      EXPECT_EQ(order == 0, a == b) << ascending[a] << " and " << ascending[b];
    }
  }
  EXPECT_EQ(compare_versions("1.007", "1.7"), 0) << "leading zeros are no difference";
  EXPECT_LT(compare_versions("1.000", "1.1"), 0);
  EXPECT_LT(compare_versions("1.x", "1.\xc3\xa9"), 0) << "bytes are unsigned";
}

TEST(CacheEntry, EveryFieldIsInTheDigest) {
  const std::vector<std::function<void(Entry&)>> changes{
      [](Entry& e) { e.key.device.identity += "x"; },
      [](Entry& e) { e.key.toolchain.driver = "9"; },
      [](Entry& e) { e.key.problem.sizes[2].last = 9; },
      [](Entry& e) { e.winner.median_us = 9; },
      [](Entry& e) { e.winner.tuned = false; },
      [](Entry& e) { ++e.created_at; },
      [](Entry& e) { e.binary += "x"; },
      [](Entry& e) { e.tuning->started_at = 9; },
      [](Entry& e) { e.tuning->trials[1].reason = ""; },
      [](Entry& e) { e.tuning->trials.pop_back(); },
      [](Entry& e) { e.tuning.reset(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Entry changed = sample();
    changes[i](changed);
    EXPECT_NE(entry_digest(changed), entry_digest(sample())) << i;
  }
  Entry renamed = sample();
  renamed.key.device.name = "renamed by a driver";
  EXPECT_EQ(entry_digest(renamed), entry_digest(sample())) << "what is for people is not in it";
  Entry endless = sample(), unknown = sample();
  endless.tuning->trials[0].predicted_us = std::numeric_limits<double>::infinity();
  unknown.tuning->trials[0].predicted_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(entry_digest(endless), entry_digest(unknown)) << "both come back from a file as NaN";
}

TEST(CacheEntry, SamplesAreThoseOfTheWinner) {
  Entry entry = sample();
  EXPECT_EQ(winner_samples(entry), 31);
  entry.tuning->trials[0].verdict = "failed";
  EXPECT_EQ(winner_samples(entry), 0);
  entry.tuning->trials[0].verdict = "ok";
  entry.tuning->trials[0].candidate.max_blocks = 1;
  EXPECT_EQ(winner_samples(entry), 0);
  entry.tuning->trials[0].candidate = entry.winner.candidate;
  entry.tuning->trials[0].candidate.policy = "another";
  EXPECT_EQ(winner_samples(entry), 0);
  entry.tuning.reset();
  EXPECT_EQ(winner_samples(entry), 0);
}

TEST(CacheEntry, BetterIsTunedThenDriverThenSamplesThenYoungerThenDigest) {
  const std::vector<std::function<void(Entry&)>> improvements{
      [](Entry& e) { e.winner.spread_us += e.created_at > 0 ? 1 : 2; },  // decides by digest alone
      [](Entry& e) { ++e.created_at; },
      [](Entry& e) { e.tuning->trials[0].samples += 1; },
      [](Entry& e) { e.key.toolchain.driver = "590.2"; },
  };
  for (std::size_t i = 1; i < improvements.size(); ++i) {
    Entry better = sample(), worse = sample();
    improvements[i](better);
    for (std::size_t k = 0; k < i; ++k) improvements[k](worse);  // whatever counts less is better there
    EXPECT_TRUE(is_better(better, worse)) << i;
    EXPECT_FALSE(is_better(worse, better)) << i;
  }
  Entry untuned = sample();
  for (std::size_t i = 1; i < improvements.size(); ++i) improvements[i](untuned);
  untuned.winner.tuned = false;
  EXPECT_TRUE(is_better(sample(), untuned));
  EXPECT_FALSE(is_better(untuned, sample()));
  Entry other = sample();
  improvements[0](other);
  EXPECT_NE(is_better(other, sample()), is_better(sample(), other)) << "one of two is always better";
  EXPECT_FALSE(is_better(sample(), sample()));
}

}  // namespace
}  // namespace hone::cache
