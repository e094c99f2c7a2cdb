#include "tests/tuner/inspect/inspect_fixture.h"

namespace hone::tuner {

cache::CandidateRecord stored_candidate(int block_threads, int resident_blocks, std::int64_t max_blocks) {
  cache::CandidateRecord record;
  record.policy =
      "block_threads=" + std::to_string(block_threads) + " vector_bytes=16 unroll=4 tail=warp finish=last_block";
  record.max_blocks = max_blocks;
  record.block_threads = block_threads;
  record.registers = 32;
  record.static_smem_bytes = 128;
  record.max_threads_per_block = 1024;
  record.resident_blocks = resident_blocks;
  return record;
}

cache::KeyRecord gpu_key(std::int64_t first, std::int64_t last) {
  cache::KeyRecord key;
  key.device = {"cuda", "Invented GPU", "sm_90", "name=Invented GPU;sm_count=100;", 100, 2048, 3000};
  key.toolchain = {"nvrtc 13.0.88", "13.0", "0123456789abcdef0123456789abcdef"};
  key.problem = {"reduce", "sum", "f32", "fast", "stream", 16, {}};
  key.problem.sizes[0] = {first, last};
  return key;
}

cache::TrialRecord stored_trial(int block_threads, double median_us) {
  cache::TrialRecord record;
  record.candidate = stored_candidate(block_threads, 2048 / block_threads, 2048 / block_threads * 100);
  record.bytes_in_flight_per_sm = 131072;
  record.predicted_us = 9;
  record.median_us = median_us;
  record.spread_us = 0.1;
  record.samples = 20;
  record.verdict = "ok";
  return record;
}

cache::TrialRecord rejected_trial(const std::string& verdict, const std::string& reason) {
  cache::TrialRecord record;
  record.candidate = stored_candidate(1024, 0, 0);
  record.verdict = verdict;
  record.reason = reason;
  return record;
}

cache::Publication tuned_sum() {
  cache::Publication publication;
  publication.key = gpu_key(741456, 1482910);
  publication.winner.candidate = stored_candidate(512, 4, 400);
  publication.winner.tuned = true;
  publication.winner.tuned_extents = {1 << 20, 1, 1};
  publication.winner.bytes_moved = 4 * (1 << 20) + 4;
  publication.winner.median_us = 2.8;
  publication.winner.spread_us = 0.05;
  publication.binary = {"cubin", "sm_90", std::vector<std::byte>(6144)};
  cache::TuningRecord tuning;
  tuning.compile_ms = 1234;
  tuning.measure_ms = 765;
  tuning.trials = {stored_trial(512, 2.8),
                   stored_trial(256, 2.94),
                   stored_trial(1024, 5.6),
                   rejected_trial("rejected", "spills: 16 bytes of local memory per thread"),
                   rejected_trial("rejected", "spills: 24 bytes of local memory per thread"),
                   rejected_trial("failed", "it did not compile\nlog line")};
  tuning.trials[1].is_default = true;
  publication.tuning = tuning;
  return publication;
}

cache::Publication heuristic_max_on_host() {
  cache::Publication publication;
  publication.key = gpu_key(1, 181);
  publication.key.device = {"host", "Invented CPU", "x86_64", "name=Invented CPU;", 2, 1024, 0};
  publication.key.toolchain = {"g++ 12.2.0", "glibc 2.36", "0123456789abcdef0123456789abcdef"};
  publication.key.problem.operation = "max";
  publication.winner.candidate = stored_candidate(128, 1, 1);
  publication.winner.candidate.registers = 0;
  publication.binary = {"elf", "x86_64", std::vector<std::byte>(100)};
  return publication;
}

cache::Publication lent(std::int64_t first, std::int64_t last) {
  cache::Publication publication = tuned_sum();
  publication.key.problem.sizes[0] = {first, last};
  publication.tuning.reset();
  return publication;
}

}  // namespace hone::tuner
