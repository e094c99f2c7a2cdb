#include "tests/cache/maintenance/maintenance_fixture.h"

#include <fmt/format.h>

#include <random>
#include <set>

#include "cache/maintenance/exchange.h"
#include "cache/rows.h"

namespace hone::cache {

Publication numbered(int number, std::size_t code_bytes) {
  Publication publication = sample_publication();
  publication.key.problem.operation = fmt::format("operation {}", number);
  publication.winner.candidate.block_threads = 32 + number;
  publication.winner.tuned = number % 2 == 1;
  if (!publication.winner.tuned) publication.tuning.reset();
  if (number % 3 == 1) publication.binary.entries = fmt::format("_Z5firstILi{}EEvv\nsecond", number);
  std::mt19937 random(static_cast<unsigned>(number) + 1);
  publication.binary.code.resize(code_bytes);
  for (std::byte& byte : publication.binary.code) byte = static_cast<std::byte>(random());
  return publication;
}

Entry entry_of(const Publication& publication, std::int64_t created_at) {
  return {.key = publication.key,
          .winner = publication.winner,
          .created_at = created_at,
          .binary = binary_digest(publication.binary),
          .tuning = publication.tuning};
}

void CacheMaintenance::put(const std::filesystem::path& file, const Publication& publication, std::int64_t created_at) {
  Import import(file);
  import.add(publication.binary);
  import.add(entry_of(publication, created_at));
  import.merge_into(file, {});
}

std::vector<std::string> CacheMaintenance::content(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::set<std::string> binaries;
  export_entries(file, {.binary = [&](const std::string& digest, const BinaryRecord&) { binaries.insert(digest); },
                        .entry =
                            [&](const Entry& entry) {
                              lines.push_back(fmt::format("{} {}{}{}", entry.key.problem.operation, entry_digest(entry),
                                                          entry.tuning ? " trials" : "",
                                                          binaries.contains(entry.binary) ? " code" : ""));
                            }});
  return lines;
}

int CacheMaintenance::found(const std::filesystem::path& file, int count, CodeUse code) {
  int found = 0;
  for (int number = 0; number < count; ++number) {
    Query query = matching_query(numbered(number));
    query.code = code;
    const std::optional<Hit> hit = Store(file).find(query);
    if (!hit) continue;
    EXPECT_EQ(hit->winner, numbered(number).winner);
    if (hit->binary) {
      EXPECT_EQ(hit->binary->entries, numbered(number).binary.entries);
    }
    ++found;
  }
  return found;
}

}  // namespace hone::cache
