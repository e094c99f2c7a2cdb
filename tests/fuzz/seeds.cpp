#include "tests/fuzz/seeds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cache/rows.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

Publication seed(int number) {
  CandidateRecord candidate;
  candidate.policy = fmt::format("block_threads={}", 32 * number);
  candidate.max_blocks = 100 * number;
  candidate.block_threads = 32 * number;
  candidate.registers = 32;
  candidate.max_threads_per_block = 1024;
  candidate.resident_blocks = 4;
  Publication publication;
  publication.key.device = {"cuda", "A GPU", "sm_90", "sms=132;", 132, 2048, 3352.25};
  publication.key.toolchain = {"nvrtc 13.0", "580.1", "0123456789abcdef"};
  publication.key.problem = {"reduce", "sum", "f32", "fast", "stream", 16, {}};
  publication.key.problem.sizes[0] = {1000 * number, 1000 * number + 999};
  publication.winner = {candidate, number != 2, {1000 * number, 1, 1}, 4000 * number, 2.5, 0.125};
  publication.binary = {"cubin", "sm_90", std::vector<std::byte>(static_cast<std::size_t>(300 * number), std::byte{7})};
  if (!publication.winner.tuned) return publication;
  publication.tuning.emplace();
  publication.tuning->started_at = 1'700'000'000;
  publication.tuning->trials.push_back({candidate, 65536, 2.25, 2.5, 0.125, 31, true, "ok", ""});
  publication.tuning->trials.push_back({candidate, 0, 0, 0, 0, 0, false, "rejected", "spills"});
  return publication;
}

/// Removed when the process ends in good order.
struct WorkFolder {
  fs::path path;

  WorkFolder() {
    std::error_code error;
    const fs::path parent = fs::is_directory("/dev/shm", error) ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string name = parent / "hone_fuzz_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) fail("no folder to work in can be made");
    path = name;
    ::setenv("TMPDIR", name.c_str(), 1);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

const std::vector<Publication>& seed_publications() {
  static const std::vector<Publication> all{seed(1), seed(2), seed(3)};
  return all;
}

Query query_of(const Publication& publication) {
  const KeyRecord& key = publication.key;
  const ProblemRecord& problem = key.problem;
  return {key.device,
          key.toolchain,
          problem.family,
          problem.operation,
          problem.dtype,
          problem.numerics,
          problem.launch_context,
          problem.alignment,
          {problem.sizes[0].first, 1, 1}};
}

Entry entry_of(const Publication& publication) {
  return {.key = publication.key,
          .winner = publication.winner,
          .created_at = 1'700'000'000,
          .binary = binary_digest(publication.binary),
          .tuning = publication.tuning};
}

const fs::path& work_folder() {
  static const WorkFolder folder;
  return folder.path;
}

fs::path write_work_file(std::span<const std::uint8_t> bytes) {
  for (const fs::directory_entry& entry : fs::directory_iterator(work_folder())) fs::remove_all(entry.path());
  fs::path path = work_folder() / "cache.sqlite";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void fail(const std::string& what) {
  fmt::print(stderr, "fuzzer: {}\n", what);
  std::abort();
}

}  // namespace hone::cache
