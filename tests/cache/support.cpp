#include "tests/cache/support.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>

#include "cache/packed.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

using test::Names;

constexpr ::uid_t kNobody = 65534;

CandidateRecord sample_candidate(int registers) {
  CandidateRecord candidate;
  candidate.policy = "block_threads=256 vector_bytes=16";
  candidate.max_blocks = 5'000'000'000;
  candidate.block_threads = 256;
  candidate.registers = registers;
  candidate.static_smem_bytes = 1024;
  candidate.local_bytes = 8;
  candidate.max_threads_per_block = 768;
  candidate.resident_blocks = 6;
  return candidate;
}

TuningRecord sample_tuning() {
  TuningRecord tuning;
  tuning.started_at = 1'700'000'000;
  tuning.compile_ms = 1234.5;
  tuning.measure_ms = 88.25;
  tuning.budget_spent = true;
  tuning.trials.push_back({sample_candidate(32), 40'000'000'000, 2.5, 2.625, 0.125, 31, true, "ok", ""});
  tuning.trials.push_back({sample_candidate(255), 0, 0, 0, 0, 0, false, "rejected", "spills 64 bytes — too many"});
  return tuning;
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = std::filesystem::temp_directory_path() / "hone_cache_test_XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WithoutRoot::give(const std::filesystem::path& path) {
  if (::geteuid() == 0) {
    EXPECT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
  }
}

WithoutRoot::WithoutRoot() : was_root_(::geteuid() == 0) {
  if (was_root_) {
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
}

WithoutRoot::~WithoutRoot() {
  if (was_root_) {
    EXPECT_EQ(::seteuid(0), 0);
  }
}

Locker::Locker(const std::filesystem::path& file) {
  EXPECT_EQ(sqlite3_open(file.c_str(), &connection_), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection_, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
}

Locker::~Locker() { sqlite3_close(connection_); }

int in_child(const std::function<int()>& work) {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void interrupt_a_write(const std::filesystem::path& file) {
  in_child([&] {
    sqlite3* connection = nullptr;
    sqlite3_open(file.c_str(), &connection);
    sqlite3_exec(connection,
                 "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;"
                 "UPDATE winner SET block_threads = 1, digest = '';"
                 "INSERT INTO binary VALUES ('x', '', '', zeroblob(500000), '', 0);",
                 nullptr, nullptr, nullptr);
    return 0;
  });
}

std::vector<std::byte> random_code(std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<std::byte> code(bytes);
  for (std::byte& byte : code) byte = static_cast<std::byte>(random());
  return code;
}

Publication sample_publication() {
  Publication publication;
  publication.key.device = {"cuda", "Invented GPU", "sm_90", "sm_count=132;l2=52428800;", 132, 2048, 3352.25};
  publication.key.toolchain = {"nvrtc 13.0", "580.1", "0123456789abcdef"};
  publication.key.problem = {"reduce", "sum", "f32", "fast", "stream", 16, {{{1, 1000}, {1, 1}, {1, 7}}}};
  publication.winner = {sample_candidate(32), true, {512, 1, 3}, 6'000'000'000, 2.625, 0.125};
  publication.binary = {"cubin", "sm_90", {std::byte{0x7f}, std::byte{0}, std::byte{0xff}, std::byte{'E'}}};
  publication.tuning = sample_tuning();
  return publication;
}

Publication untuned_publication() {
  Publication publication = sample_publication();
  publication.winner = {sample_candidate(64), false, {1, 1, 1}, 0, 0, 0};
  publication.binary.code.push_back(std::byte{1});
  publication.tuning.reset();
  return publication;
}

Publication wider(Publication publication) {
  publication.key.problem.sizes[0].last = 2000;
  return publication;
}

Query matching_query(const Publication& publication) {
  const KeyRecord& key = publication.key;
  const ProblemRecord& problem = key.problem;
  return {key.device,       key.toolchain,          problem.family,    problem.operation, problem.dtype,
          problem.numerics, problem.launch_context, problem.alignment, {500, 1, 1},       CodeUse::required,
          problem.objective};
}

namespace {

void sqlar_uncompress(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto* data = static_cast<const std::byte*>(sqlite3_value_blob(arguments[0]));
  const Packed packed{.data = {data, data + sqlite3_value_bytes(arguments[0])},
                      .bytes = sqlite3_value_int64(arguments[1])};
  const std::optional<std::vector<std::byte>> bytes = unpack(packed);
  if (bytes) sqlite3_result_blob64(context, bytes->data(), bytes->size(), SQLITE_TRANSIENT);
}

}  // namespace

std::string sql_to_change_trials(const std::string& where) {
  return "UPDATE tuning SET trials = CAST(replace(CAST(trials AS TEXT), '2.625', '1.625') AS BLOB) WHERE " + where;
}

std::vector<std::string> sql(const std::filesystem::path& file, const std::string& statements) {
  const auto add_row = [](void* rows, int count, char** values, char**) {
    std::string row;
    for (int column = 0; column < count; ++column) {
      if (column > 0) row += '|';
      row += values[column] != nullptr ? values[column] : "NULL";
    }
    static_cast<std::vector<std::string>*>(rows)->push_back(row);
    return 0;
  };
  std::vector<std::string> rows;
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &connection), SQLITE_OK);
  sqlite3_create_function_v2(connection, "sqlar_uncompress", 2, SQLITE_UTF8 | SQLITE_INNOCUOUS, nullptr,
                             sqlar_uncompress, nullptr, nullptr, nullptr);
  char* message = nullptr;
  sqlite3_exec(connection, statements.c_str(), add_row, &rows, &message);
  EXPECT_EQ(message, nullptr) << message;
  sqlite3_free(message);
  sqlite3_close(connection);
  return rows;
}

void make_fixture(const std::filesystem::path& file, int version) {
  const std::filesystem::path source =
      std::filesystem::path(HONE_CACHE_FIXTURES) / ("version_" + std::to_string(version) + ".sql");
  std::ifstream stream(source);
  const std::string statements{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(statements.empty()) << source;
  sql(file, statements);
}

std::vector<std::byte> read_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

void write_bytes(const std::filesystem::path& file, const std::vector<std::byte>& bytes) {
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write_text(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

bool may_mount() {
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::geteuid() != 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << "0 0 1";
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

StoreFault fault_of(const std::function<void()>& action, const std::filesystem::path& path, const std::string& words) {
  try {
    action();
  } catch (const StoreError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path.native()));
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
    const std::string repair = "hone cache repair --cache " + path.native(), text = error.what();
    const std::size_t at = text.find(repair), end = at == std::string::npos ? 0 : at + repair.size();
    EXPECT_EQ(text.find("--cache", end), std::string::npos) << "the file may come from elsewhere: " << text;
    return error.fault();
  }
  ADD_FAILURE() << "no StoreError was thrown";
  return StoreFault::failed;
}

}  // namespace hone::cache
