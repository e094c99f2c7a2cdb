// A session and its cache file: what fails there, and what rows say that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <hone/error.h>

#include "cache/store.h"
#include "runtime/choose/compiled.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class SessionCacheTest : public FakeSessionTest {
 protected:
  /// Tunes once, so that the file has one row; then writes that row again as `change` left it.
  void rewrite_row(const std::function<void(cache::Publication&)>& change) {
    Session(device_, options()).prepare(family_.problem(kSize));
    const cache::Store store(folder_ / "cache.sqlite");
    const std::vector<cache::StoredWinner> winners = store.winners();
    ASSERT_EQ(winners.size(), 1u);
    const std::string code = winners[0].winner.candidate.policy;
    const auto bytes = std::as_bytes(std::span(code));
    cache::Publication publication{.key = winners[0].key,
                                   .winner = winners[0].winner,
                                   .binary = {"fake", device_->facts().architecture, {bytes.begin(), bytes.end()}},
                                   .tuning = store.tuning(winners[0].id)};
    change(publication);
    if (const auto policy = family_.space().parse(publication.winner.candidate.policy))
      publication.binary.format += ";unit=" + unit_digest(unit_of(family_.problem(kSize), *policy));
    store.publish(publication);
  }

  /// A session whose cache cannot be used works all the same, and counts.
  void expect_works_without(const SessionOptions& options, const char* why) {
    Session session(device_, options);
    EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
    EXPECT_EQ(launch(session).source, ChoiceSource::memory);
    EXPECT_GE(session.counters().cache_failures, 1u);
    EXPECT_THAT(session.counters().last_cache_failure, Names(why));
  }
};

TEST_F(SessionCacheTest, ADirectoryInItsPlaceIsCounted) {
  SessionOptions bad = options();
  bad.cache_path = folder_ / "folder.sqlite";
  std::filesystem::create_directory(bad.cache_path);
  expect_works_without(bad, "folder.sqlite");
}

TEST_F(SessionCacheTest, AForeignFileIsCountedAndLeftAlone) {
  const std::string text = "this is somebody's letter\n";
  std::ofstream(folder_ / "cache.sqlite") << text;
  expect_works_without(options(), "cache.sqlite");
  std::ifstream file(folder_ / "cache.sqlite");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(SessionCacheTest, AFileWhoseFolderCannotBeMadeIsCounted) {
  std::ofstream(folder_ / "file") << "x";
  SessionOptions bad = options();
  bad.cache_path = folder_ / "file" / "cache.sqlite";
  expect_works_without(bad, "cache.sqlite");
}

TEST_F(SessionCacheTest, AFreshlyWrittenRowIsAHit) {
  rewrite_row([](cache::Publication&) {});
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
}

TEST_F(SessionCacheTest, SymbolsOfABinaryComeBack) {
  device_->symbols = {"_Z5firstPKf", "_Z6secondIfEvPKT_"};
  Session(device_, options()).prepare(family_.problem(kSize));
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
  EXPECT_EQ(session.counters().cache_rejects, 0u);
}

TEST_F(SessionCacheTest, ARowWithAPolicyThatTheFamilyDoesNotHaveIsReportedOnce) {
  rewrite_row([](auto& row) { row.winner.candidate.policy = "threads=512 work=1 finish=alone"; });
  std::vector<std::string> reports;
  SessionOptions heuristic = options();
  heuristic.on_miss = MissPolicy::heuristic;
  heuristic.report_cache_failure = [&](std::string_view message) { reports.emplace_back(message); };
  Session session(device_, heuristic);
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  ASSERT_THAT(reports, testing::SizeIs(1));
  EXPECT_THAT(reports[0], Names("the stored winner of total", "'threads=512' stands where"));
}

TEST_F(SessionCacheTest, RowsThatCannotBeAreMisses) {
  const std::vector<std::function<void(cache::Publication&)>> changes{
      [](auto& row) { row.winner.candidate.policy = "threads=512 work=1 finish=alone"; },
      [](auto& row) { row.winner.candidate.policy = ""; },
      [](auto& row) { row.winner.candidate.policy += " "; },
      [](auto& row) { row.winner.candidate.max_blocks = 0; },
      [](auto& row) { row.winner.candidate.max_blocks = -1; },
      [](auto& row) { row.winner.candidate.max_blocks = std::int64_t{1} << 40; },
      [](auto& row) {
        row.winner.candidate.policy = "threads=128 work=1 finish=joined";
        row.winner.candidate.max_blocks = 1000000;  // more partial results than a workspace holds
      },
      [](auto& row) {
        row.winner.candidate.policy = "threads=128 work=1 finish=joined";
        row.winner.candidate.max_blocks = std::int64_t{1} << 61;  // times 8 bytes is 0
      },
      [](auto& row) { row.winner.candidate.block_threads += 32; },
      [](auto& row) { row.winner.candidate.registers += 1; },
      [](auto& row) { row.winner.candidate.static_smem_bytes += 1; },
      [](auto& row) { row.winner.candidate.local_bytes += 8; },
      [](auto& row) { row.winner.candidate.max_threads_per_block -= 1; },
      [](auto& row) { row.binary.architecture = "fake_2"; },
      [](auto& row) { row.binary.format = "unknown"; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    rewrite_row(changes[i]);
    Session session(device_, options());
    EXPECT_EQ(launch(session).source, ChoiceSource::tuned) << i;
    EXPECT_EQ(session.counters().cache_rejects, 1u) << i;
    EXPECT_EQ(Session(device_, options()).prepare(family_.problem(kSize)).source, ChoiceSource::cache) << i;
    std::filesystem::remove(folder_ / "cache.sqlite");
  }
}

TEST_F(SessionCacheTest, AnEditedKernelIsAMissAndNeverTheOldCode) {
  Session(device_, options()).prepare(family_.problem(kSize));
  family_ = TotalFamily({.source_comment = " // edited"});
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  EXPECT_EQ(session.counters().cache_hits, 0u);
  EXPECT_GE(session.counters().compiles, 1u);
  Session tuning(device_, options());
  EXPECT_EQ(launch(tuning).source, ChoiceSource::tuned);
  Session later(device_, options());
  EXPECT_EQ(launch(later).source, ChoiceSource::cache);
  EXPECT_EQ(later.counters().compiles, 0u);
}

TEST_F(SessionCacheTest, AnEditedKernelIsAMissAlsoWhereTheOldCodeIsNotLoadedOrNotThere) {
  Session(device_, options()).prepare(family_.problem(kSize));
  family_ = TotalFamily({.source_comment = " // edited"});
  SessionOptions without_binaries = options(MissPolicy::error);
  without_binaries.load_binaries = false;
  Session compiling(device_, without_binaries);
  EXPECT_THROW(compiling.prepare(family_.problem(kSize)), Error);
  family_ = TotalFamily();
  EXPECT_EQ(compiling.prepare(family_.problem(kSize)).source, ChoiceSource::cache);
}

TEST_F(SessionCacheTest, CodeOfUnknownSourceIsCompiledAgainAndItsWinnerServes) {
  Session(device_, options()).prepare(family_.problem(kSize));
  const cache::Store store(folder_ / "cache.sqlite");
  const cache::StoredWinner stored = store.winners().at(0);
  const auto bytes = std::as_bytes(std::span(stored.winner.candidate.policy));
  store.publish(cache::Publication{.key = stored.key,
                                   .winner = stored.winner,
                                   .binary = {"fake", device_->facts().architecture, {bytes.begin(), bytes.end()}},
                                   .tuning = {}});
  Session session(device_, options(MissPolicy::error));
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
  EXPECT_EQ(session.counters().compiles, 1u);
}

TEST_F(SessionCacheTest, APolicyOfOneBlockWithMoreIsAMiss) {
  family_ = TotalFamily({.alone_is_one_block = true});
  rewrite_row([](cache::Publication& row) { row.winner.candidate.max_blocks = 16; });
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
  EXPECT_EQ(launch(session).winner->candidate.geometry.max_blocks, 1);
}

TEST_F(SessionCacheTest, ABinaryThatDoesNotLoadIsCountedAndReplaced) {
  Session(device_, options()).prepare(family_.problem(kSize));
  device_->script = [this](std::string_view) {
    return FakeKernel{.load_error = device_->compiles() <= 12 ? "no image for this device" : ""};
  };
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
  EXPECT_EQ(session.counters().cache_failures, 1u);
  EXPECT_THAT(session.counters().last_cache_failure, Names("no image"));
}

TEST_F(SessionCacheTest, ADamagedFileIsNeverAWrongResult) {
  Session(device_, options()).prepare(family_.problem(kSize));
  const auto path = folder_ / "cache.sqlite";
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  const auto copy = folder_ / "copy.sqlite";
  std::filesystem::copy_file(path, copy);
  for (std::streamoff at = 0; at < size; at += 509) {
    std::filesystem::copy_file(copy, path, std::filesystem::copy_options::overwrite_existing);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put('\x5a');
    file.close();
    Session session(device_, options(MissPolicy::heuristic));
    launch(session);  // checks the result
  }
}

TEST_F(SessionCacheTest, AnotherDeviceSharesNothing) {
  Session(device_, options()).prepare(family_.problem(kSize));
  DeviceFacts facts = FakeDevice::default_facts();
  facts.sm_count = 9;
  Session other(std::make_shared<FakeDevice>(facts), options(MissPolicy::error));
  EXPECT_THROW(other.prepare(family_.problem(kSize)), Error);
}

TEST_F(SessionCacheTest, CodeOfAnotherCompilerServesAndNothingIsCompiled) {
  const Candidate tuned = Session(device_, options()).prepare(family_.problem(kSize)).winner->candidate;
  for (const char* compiler : {"fake-2", ""}) {
    auto other = std::make_shared<FakeDevice>();
    other->compiler = compiler;
    Session session(other, options(MissPolicy::error));
    const Choice choice = session.prepare(family_.problem(kSize));
    EXPECT_EQ(choice.source, ChoiceSource::cache);
    EXPECT_EQ(choice.winner->candidate, tuned);
    EXPECT_TRUE(choice.winner->tuned);
    EXPECT_EQ(other->compiles(), 0);
  }
  EXPECT_TRUE(cache::Store(folder_ / "cache.sqlite").misses().empty()) << "what was measured is what runs";
}

TEST_F(SessionCacheTest, CodeOfAnotherCompilerThatDoesNotLoadIsCompiledAnew) {
  const Candidate tuned = Session(device_, options()).prepare(family_.problem(kSize)).winner->candidate;
  auto other = std::make_shared<FakeDevice>();
  other->compiler = "fake-2";
  other->script = [&](std::string_view) {
    if (other->compiles() == 0) return FakeKernel{.load_error = "the driver is older than the code"};
    return FakeKernel{.resources = {.registers = 40}};
  };
  {
    Session session(other, options(MissPolicy::error));
    const Choice choice = launch(session);
    EXPECT_EQ(choice.source, ChoiceSource::cache);
    EXPECT_EQ(choice.winner->candidate, tuned);
    EXPECT_EQ(choice.winner->resources.registers, 40);
    EXPECT_EQ(other->compiles(), 1);
    EXPECT_THAT(session.counters().last_cache_failure, Names("older than the code"));
  }
  const auto missed = cache::Store(folder_ / "cache.sqlite").misses();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].miss.reason, cache::kOtherDriver);
}

TEST_F(SessionCacheTest, AGpuIsTheSameWhateverItsNameAndALittleOfItsMemoryClock) {
  DeviceFacts facts = FakeDevice::facts_with_bandwidth();
  Session(std::make_shared<FakeDevice>(facts), options()).prepare(family_.problem(kSize));
  facts.name = "Fake GPU 80GB";
  facts.memory_clock_khz = facts.memory_clock_khz / 100 * 101;
  Session same(std::make_shared<FakeDevice>(facts), options(MissPolicy::error));
  EXPECT_EQ(same.prepare(family_.problem(kSize)).source, ChoiceSource::cache);
  facts.memory_clock_khz *= 2;
  Session other(std::make_shared<FakeDevice>(facts), options(MissPolicy::error));
  EXPECT_THROW(other.prepare(family_.problem(kSize)), Error);
}

TEST_F(SessionCacheTest, AnotherTemplateSharesNothing) {
  Session(device_, options()).prepare(family_.problem(kSize));
  const TotalFamily changed({.sources = {{"total.cuh", "// changed"}}});
  EXPECT_THROW(Session(device_, options(MissPolicy::error)).prepare(changed.problem(kSize)), Error);
}

TEST_F(SessionCacheTest, WithoutACompilerStoredWinnersServe) {
  Session(device_, options()).prepare(family_.problem(kSize));
  auto bare = std::make_shared<FakeDevice>();
  bare->compiler = "";
  Session session(bare, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
}

TEST_F(SessionCacheTest, ADriverUpdateKeepsWinners) {
  Session(device_, options()).prepare(family_.problem(kSize));
  DeviceFacts facts = FakeDevice::default_facts();
  facts.driver = "2.0";
  Session session(std::make_shared<FakeDevice>(facts), options(MissPolicy::error));
  EXPECT_EQ(session.prepare(family_.problem(kSize)).source, ChoiceSource::cache);
}

}  // namespace
}  // namespace hone
