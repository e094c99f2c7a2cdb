// Writes the seeds of the fuzzers into FOLDER/open and FOLDER/import.
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cache/maintenance/exchange.h"
#include "cache/maintenance/snapshot.h"
#include "cache/rows.h"
#include "tests/fuzz/seeds.h"
#include "tuner/cache/exchange_lines.h"

namespace {

namespace fs = std::filesystem;
using namespace hone;

void execute(const fs::path& file, const std::string& sql) {
  sqlite3* connection = nullptr;
  sqlite3_open(file.c_str(), &connection);
  char* message = nullptr;
  if (sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &message) != SQLITE_OK) cache::fail(message);
  sqlite3_close(connection);
}

/// A cache with the seeds, on small pages, so that the trees have several and the file is small.
void write_cache(const fs::path& file, const std::string& change) {
  const fs::path work = cache::write_work_file({});
  cache::Import import(work);
  for (const cache::Publication& seed : cache::seed_publications()) {
    import.add(seed.binary);
    import.add(cache::entry_of(seed));
  }
  import.merge_into(work, {});
  execute(work, "PRAGMA page_size = 512; VACUUM; " + change);
  fs::copy_file(work, file, fs::copy_options::overwrite_existing);
}

void write_text(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

void write_files(const fs::path& folder) {
  write_cache(folder / "intact", "");
  write_cache(folder / "wrong_digest", "UPDATE winner SET registers = 33 WHERE id = 1");
  write_cache(folder / "evicted", "DELETE FROM binary WHERE rowid = 1");
  write_cache(folder / "newer", "CREATE TABLE future (x); PRAGMA user_version = 10");
  write_cache(folder / "trigger", "CREATE TRIGGER t AFTER INSERT ON winner BEGIN DELETE FROM winner; END");
  const fs::path work = cache::write_work_file({});
  execute(work, "PRAGMA page_size = 512; CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
  fs::copy_file(work, folder / "foreign", fs::copy_options::overwrite_existing);
  write_text(folder / "text", "a letter\n");
  write_text(folder / "header", std::string("SQLite format 3\0", 16));
}

void write_exports(const fs::path& folder) {
  using namespace hone::tuner;
  std::string text = *to_line(HeaderLine{}) + "\n";
  EndLine end;
  for (const cache::Publication& seed : cache::seed_publications()) {
    text += *to_line(BinaryLine{cache::binary_digest(seed.binary), seed.binary}) + "\n";
    text += *to_line(cache::entry_of(seed)) + "\n";
    ++end.binaries;
    ++end.winners;
  }
  write_text(folder / "intact", text + *to_line(end) + "\n");
  write_text(folder / "truncated", text.substr(0, text.size() / 2));
  write_text(folder / "empty", *to_line(HeaderLine{false}) + "\n" + *to_line(EndLine{}) + "\n");
  write_text(folder / "not_a_number", *to_line(HeaderLine{}) + "\n{\"end\":{\"binaries\":NaN,\"winners\":1e999}}\n");
  write_text(folder / "nested", *to_line(HeaderLine{}) + "\n" + std::string(200, '[') + "\n");
  std::string made;
  for (int i = 0; i < 600; ++i) made += static_cast<char>(i * 37 % 61 + 'a' % 7);
  write_text(folder / "made_winners", made);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) cache::fail("usage: make_fuzz_corpus FOLDER");
  const fs::path folder = fs::absolute(arguments[1]);
  for (const char* name : {"open", "import"}) fs::create_directories(folder / name);
  write_files(folder / "open");
  write_exports(folder / "import");
}
