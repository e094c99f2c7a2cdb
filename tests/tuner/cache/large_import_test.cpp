#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "cache/rows.h"
#include "tests/support/names.h"
#include "tests/support/share.h"
#include "tests/tuner/cache/cache_command_fixture.h"
#include "tuner/cache/exchange_lines.h"

namespace hone::tuner {
namespace {

using test::Names;

/// A hundredth of what is asked for, unless HONE_TEST_SHARE says otherwise: 100 means a million rows.
int row_count() { return static_cast<int>(10'000 * test::share()); }

long peak_mib() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

TEST_F(CacheCommand, LargeImportNeedsLittleMemoryAndIsFoundWhole) {
  const int rows = row_count();
  const std::filesystem::path lines = folder_ / "large.jsonl";
  {
    std::ofstream out(lines, std::ios::binary);
    out << *to_line(HeaderLine{}) << '\n';
    cache::Publication publication = cache::numbered(2);
    out << *to_line(BinaryLine{cache::binary_digest(publication.binary), publication.binary}) << '\n';
    for (int row = 0; row < rows; ++row) {
      publication.key.problem.sizes[0] = {row + 1, row + 1};
      out << *to_line(cache::entry_of(publication, kTime + row)) << '\n';
    }
    out << *to_line(EndLine{1, rows}) << '\n';
  }
  const long before_mib = peak_mib();
  const auto start = std::chrono::steady_clock::now();
  const testing::CommandRun run = hone({"import", lines.native()});
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names(fmt::format("{:<10}added", rows)));
  EXPECT_THAT(cache::sql(file_, "SELECT count(*) FROM winner"), ::testing::ElementsAre(std::to_string(rows)));
  for (const int row : {0, rows / 2, rows - 1}) {
    cache::Query query = cache::matching_query(cache::numbered(2));
    query.extents = {row + 1, 1, 1};
    EXPECT_TRUE(cache::Store(file_).find(query)) << row;
  }
  std::cout << fmt::format("import of {} rows: {:.1f} s, {} MiB more memory at its peak\n", rows, spent.count(),
                           peak_mib() - before_mib);
  EXPECT_LT(peak_mib() - before_mib, 300);
}

}  // namespace
}  // namespace hone::tuner
