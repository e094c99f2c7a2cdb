#include "cache/shipped_winners.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cache/layers.h"
#include "tests/cache/store_fixture.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class CacheShippedWinners : public testing::Test {
 protected:
  CacheShippedWinners() {
    query_.code = CodeUse::optional;
    header_ = {.version = "0.1.0",
               .date = "2026-11-25",
               .device = sample_.key.device,
               .compiler = sample_.key.toolchain.compiler,
               .driver = sample_.key.toolchain.driver};
  }

  StoredWinner winner(std::int64_t first, std::int64_t last, const std::string& policy = "block_threads=256") const {
    StoredWinner stored;
    stored.key = sample_.key;
    stored.winner = sample_.winner;
    stored.key.problem.sizes = {{{first, last}, {1, 1}, {1, 7}}};
    stored.winner.tuned_extents = {last, 1, 3};
    stored.winner.candidate.policy = policy;
    return stored;
  }

  void write(const std::vector<StoredWinner>& winners) const { write_text(file_, shipped_text(header_, winners)); }

  std::optional<Hit> find(const Query& query) { return shipped_.find(query, report_); }

  std::vector<NearWinner> find_near(const Query& query) {
    return shipped_.find_near(std::span(&query, 1), {{{1, 2000}, {1, 1}, {1, 8}}}, report_);
  }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "gpu.winners";
  Publication sample_ = sample_publication();
  Query query_ = matching_query(sample_);
  ShippedHeader header_;
  ShippedWinners shipped_{file_};
  std::vector<std::string> reports_;
  ShippedWinners::Report report_ = [this](const std::string& message) { reports_.push_back(message); };
};

TEST_F(CacheShippedWinners, AreFoundAsTheyWereWritten) {
  write({winner(1, 499, "a=1"), winner(500, 1000, "a=2 b=x")});
  const std::optional<Hit> hit = find(query_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->winner.candidate.policy, "a=2 b=x");
  EXPECT_EQ(hit->winner.candidate.max_blocks, sample_.winner.candidate.max_blocks);
  EXPECT_EQ(hit->winner.candidate.block_threads, sample_.winner.candidate.block_threads);
  EXPECT_EQ(hit->winner.candidate.resident_blocks, sample_.winner.candidate.resident_blocks);
  EXPECT_EQ(hit->winner.median_us, 2.625);
  EXPECT_EQ(hit->winner.tuned_extents, (std::array<std::int64_t, 3>{1000, 1, 3}));
  EXPECT_EQ(hit->sizes, winner(500, 1000).key.problem.sizes);
  EXPECT_TRUE(is_shipped(hit->winner));
  EXPECT_THAT(hit->winner.lender, Names("Invented GPU", "2026-11-25", "0.1.0", "580.1"));
  EXPECT_FALSE(hit->binary);
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CacheShippedWinners, NeighbouringRangesOfOneCandidateAreOneRow) {
  const std::string text = shipped_text(header_, {winner(501, 1000), winner(1, 500), winner(2000, 3000)});
  EXPECT_THAT(text, HasSubstr("\n1..1000x1x1..7 at 1000x1x3 us=2.625 "));
  EXPECT_THAT(text, HasSubstr("\n2000..3000x1x1..7 "));
}

TEST_F(CacheShippedWinners, UntunedAndShippedOnesAreLeftOut) {
  StoredWinner untuned = winner(1, 10), again = winner(1, 20);
  untuned.winner.tuned = false;
  again.winner.lender = std::string(kShippedMark) + "somewhere";
  EXPECT_THAT(shipped_text(header_, {untuned, again}), Not(HasSubstr("[")));
}

TEST_F(CacheShippedWinners, ServeTheirKeyOnly) {
  write({winner(1, 1000)});
  EXPECT_TRUE(find(query_));
  std::vector<Query> others(8, query_);
  others[0].device.identity = "sm_count=7;";
  others[1].toolchain.family_digest = "other";
  others[2].dtype = "f16";
  others[3].launch_context = "graph";
  others[4].alignment = 4;
  others[5].objective = "energy";
  others[6].extents = {1001, 1, 1};
  others[7].code = CodeUse::required;  // there is no compiler
  for (const Query& other : others) EXPECT_FALSE(find(other)) << &other - others.data();
}

TEST_F(CacheShippedWinners, AreLentAcrossAlignmentSourcesAndDevices) {
  write({winner(1, 1000)});
  Query other = query_;
  other.alignment = 4;
  EXPECT_THAT(find_near(other), SizeIs(1));
  other.toolchain.family_digest = "other";
  ASSERT_THAT(find_near(other), SizeIs(1));
  EXPECT_TRUE(find_near(other)[0].other_source);
  EXPECT_FALSE(find_near(query_)[0].other_source);
  other.device.identity = "sm_count=7;";
  EXPECT_THAT(find_near(other), IsEmpty());
  other.devices = Devices::similar;
  EXPECT_THAT(find_near(other), SizeIs(1));
  other.device.kind = "host";
  EXPECT_THAT(find_near(other), IsEmpty()) << "another kind of device";
}

TEST_F(CacheShippedWinners, ADamagedRowIsLeftOutAndReportedOnceWithItsLine) {
  write({winner(1, 499, "a=1"), winner(500, 1000, "a=2"), winner(2000, 3000, "a=3")});
  std::string text =
      shipped_text(header_, {winner(1, 499, "a=1"), winner(500, 1000, "a=2"), winner(2000, 3000, "a=3")});
  text.replace(text.find("\n500..1000") + 1, 3, "5oo");
  write_text(file_, text);
  EXPECT_FALSE(find(query_));
  Query small = query_;
  small.extents = {100, 1, 1};
  EXPECT_EQ(find(small)->winner.candidate.policy, "a=1");
  ASSERT_THAT(reports_, SizeIs(1));
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("5oo")), '\n') + 1;
  EXPECT_THAT(reports_[0], Names(file_.native(), fmt::format("line {}:", line)));
}

TEST_F(CacheShippedWinners, ADamagedGroupTakesItsRowsAlone) {
  StoredWinner other = winner(1, 1000);
  other.key.problem.family = "transpose";
  std::string text = shipped_text(header_, {winner(1, 1000), other});
  const std::size_t group = text.find("[reduce");
  text.replace(text.find("| 16 |", group), 6, "| xx |");
  write_text(file_, text);
  EXPECT_FALSE(find(query_));
  query_.family = "transpose";
  EXPECT_TRUE(find(query_));
  EXPECT_THAT(reports_, SizeIs(1));
}

TEST_F(CacheShippedWinners, FilesThatCannotBeUsedAreReportedOnceAndAbsentOnesAreEmpty) {
  EXPECT_FALSE(find(query_));
  EXPECT_THAT(reports_, IsEmpty());
  std::filesystem::create_directory(folder_ / "folder.winners");
  write_text(folder_ / "other.winners", "hone_winners 99\n");
  for (const char* name : {"folder.winners", "other.winners"}) {
    reports_.clear();
    ShippedWinners shipped(folder_ / name);
    EXPECT_FALSE(shipped.find(query_, report_));
    EXPECT_FALSE(shipped.find(query_, report_));
    ASSERT_THAT(reports_, SizeIs(1));
    EXPECT_THAT(reports_[0], Names(name));
  }
}

TEST_F(CacheShippedWinners, AreNoCacheFile) {
  write_text(folder_ / "gpu.winners", shipped_text(header_, {winner(1, 499, "a=1")}));
  try {
    Store(folder_ / "gpu.winners").winners();
    FAIL() << "it was opened";
  } catch (const StoreError& error) {
    EXPECT_THAT(error.what(), Names("gpu.winners", "HONE_CACHE_PATH"));
  }
}

TEST_F(CacheShippedWinners, TruncationsAndWrongBytesAreSurvived) {
  const std::string text = shipped_text(header_, {winner(1, 499, "a=1"), winner(500, 1000, "a=2")});
  for (std::size_t i = 0; i < text.size(); i += 7) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    for (const std::string& each : {text.substr(0, i), damaged}) {
      write_text(file_, each);
      ShippedWinners shipped(file_);
      shipped.find(query_, report_);
      shipped.find_near(std::span(&query_, 1), {{{1, 2000}, {1, 1}, {1, 8}}}, report_);
    }
  }
}

TEST_F(CacheShippedWinners, AreAskedAfterTunedWinnersOfTheLayersAndBeforeUntunedOnes) {
  write({winner(1, 1000, "shipped=1")});
  const std::filesystem::path user = folder_ / "user.sqlite";
  std::vector<LayerFailure> failures;
  Layers layers({{user, true}}, [&](const LayerFailure& failure) { failures.push_back(failure); }, {file_});
  EXPECT_EQ(layers.find(query_)->winner.candidate.policy, "shipped=1");
  layers.publish(untuned_publication());
  EXPECT_EQ(layers.find(query_)->winner.candidate.policy, "shipped=1");
  layers.publish(sample_);
  EXPECT_EQ(layers.find(query_)->winner.candidate.policy, sample_.winner.candidate.policy);
  EXPECT_THAT(failures, IsEmpty());
}

/// The budget is generous: sanitizers and busy machines are slow.
TEST_F(CacheShippedWinners, TenThousandRowsAreFoundInMilliseconds) {
  std::vector<StoredWinner> winners;
  for (int operation = 0; operation < 100; ++operation)
    for (int i = 0; i < 100; ++i) {
      winners.push_back(winner(10 * i + 1, 10 * i + 10, fmt::format("block_threads=256 unroll={} tail=shared", i)));
      winners.back().key.problem.operation = fmt::format("op{}", operation);
    }
  write(winners);
  query_.operation = "op50";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(find(query_));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  RecordProperty("ms", fmt::format("{:.2f}", took.count()));
  EXPECT_LT(took.count(), 500);
}

}  // namespace
}  // namespace hone::cache
