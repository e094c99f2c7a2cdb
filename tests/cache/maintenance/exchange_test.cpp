#include "cache/maintenance/exchange.h"

#include "cache/rows.h"
#include "tests/cache/maintenance/maintenance_fixture.h"

namespace hone::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CacheExchange : public CacheMaintenance {
 protected:
  /// Brings everything from one file to another.
  CopyCounts carry(const std::filesystem::path& from, const std::filesystem::path& to) {
    Import import(to);
    export_entries(from, {.binary = [&](const std::string&, const BinaryRecord& code) { import.add(code); },
                          .entry = [&](const Entry& entry) { EXPECT_TRUE(import.add(entry)); }});
    return import.merge_into(to, {});
  }
};

TEST_F(CacheExchange, EverythingComesOverAndTwiceIsAsOnce) {
  for (int number = 0; number < 6; ++number) put(file_, numbered(number), kTime + number);
  const CopyCounts counts = carry(file_, other_);
  EXPECT_EQ(counts.added, 6);
  EXPECT_EQ(counts.binaries, 6);
  EXPECT_EQ(content(other_), content(file_));
  const std::vector<std::byte> once = read_bytes(other_);
  EXPECT_TRUE(carry(file_, other_).changes_nothing());
  EXPECT_EQ(read_bytes(other_), once);
}

TEST_F(CacheExchange, FileThatDoesNotExistOrIsEmptyHasNothing) {
  const ExportVisitor nobody{.binary = {}, .entry = [](const Entry&) { FAIL(); }};
  EXPECT_EQ(export_entries(file_, nobody).winners, 0);
  write_text(file_, "");
  EXPECT_EQ(export_entries(file_, nobody).winners, 0);
}

TEST_F(CacheExchange, DamageIsLeftOutAndCounted) {
  for (const int number : {1, 3, 5, 7}) put(file_, numbered(number), kTime + number);
  sql(file_,
      "UPDATE winner SET registers = 1 WHERE operation = 'operation 1';"
      "UPDATE binary SET code = x'00' WHERE digest = (SELECT binary FROM winner WHERE operation = 'operation 3');"
      "UPDATE tuning SET trial_bytes = 1 WHERE winner = (SELECT id FROM winner WHERE operation = 'operation 5')");
  std::vector<std::string> operations;
  int binaries = 0;
  const PassCounts counts =
      export_entries(file_, {.binary = [&](const std::string&, const BinaryRecord&) { ++binaries; },
                             .entry =
                                 [&](const Entry& entry) {
                                   operations.push_back(entry.key.problem.operation + (entry.tuning ? "" : " untold"));
                                 }});
  EXPECT_THAT(operations, ElementsAre("operation 3", "operation 5 untold", "operation 7"));
  EXPECT_EQ(binaries, 2);
  EXPECT_EQ(counts.winners, 3);
  EXPECT_EQ(counts.damaged_winners, 1);
  EXPECT_EQ(counts.damaged_binaries, 1);
  EXPECT_EQ(counts.damaged_tunings, 1);
}

TEST_F(CacheExchange, OnlyWhatIsWantedAndSharedCodeOnce) {
  put(file_, numbered(1));
  put(file_, wider(numbered(1)));
  put(file_, numbered(3));
  int binaries = 0, entries = 0;
  export_entries(file_, {.binary = [&](const std::string&, const BinaryRecord&) { ++binaries; },
                         .entry = [&](const Entry&) { ++entries; },
                         .wanted = [](const Entry& entry) { return entry.key.problem.operation == "operation 1"; }});
  EXPECT_EQ(entries, 2);
  EXPECT_EQ(binaries, 1);
  export_entries(file_, {.binary = {}, .entry = [&](const Entry&) { ++entries; }});
  EXPECT_EQ(entries, 5);
}

TEST_F(CacheExchange, SecondWinnerForAKeyIsTold) {
  Import import(file_);
  EXPECT_TRUE(import.add(entry_of(numbered(1), kTime)));
  EXPECT_FALSE(import.add(entry_of(numbered(1), kTime)));
  EXPECT_FALSE(import.add(entry_of(numbered(1), kTime + 1)));
  EXPECT_FALSE(std::filesystem::exists(file_)) << "nothing is written before the end";
}

TEST_F(CacheExchange, WithoutTheirCodeWinnersAreCounted) {
  Import import(file_);
  import.add(entry_of(numbered(1), kTime));
  EXPECT_EQ(import.merge_into(file_, {}).without_code, 1);
  EXPECT_EQ(found(file_, 2), 0);
  EXPECT_EQ(found(file_, 2, CodeUse::optional), 1);
}

TEST_F(CacheExchange, UnusableDestinationIsNamedAndNothingIsWritten) {
  write_text(file_, "a letter that somebody wrote, long enough to be looked at as a file with a header of its own");
  const std::vector<std::byte> letter = read_bytes(file_);
  Import import(file_);
  import.add(entry_of(numbered(1), kTime));
  EXPECT_EQ(fault_of([&] { import.merge_into(file_, {}); }, file_, "another kind"), StoreFault::not_a_database);
  EXPECT_EQ(read_bytes(file_), letter);
}

}  // namespace
}  // namespace hone::cache
