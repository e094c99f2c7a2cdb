#include "tests/tuner/report/report_fixture.h"

#include <cmath>
#include <fstream>
#include <iterator>

namespace hone::tuner {
namespace {

constexpr int kSms = 132;

cache::KeyRecord key(int k, double octaves_above, const std::string& operation, const std::string& dtype) {
  cache::KeyRecord key;
  key.device = {"cuda",
                "Invented H100",
                "sm_90",
                "kind=cuda;name=Invented H100;architecture=sm_90;compute_capability=90;sm_count=132;"
                "max_threads_per_sm=2048;l2_bytes=52428800;memory_clock_khz=2619000;memory_bus_bits=5120;",
                kSms,
                2048,
                3352.32};
  key.toolchain = {"nvrtc 13.0.88", "13.0", "0123456789abcdef0123456789abcdef"};
  key.problem = {"reduce", operation, dtype, "fast", "stream", 16, {}};
  const double middle = k + octaves_above;
  key.problem.sizes[0] = {static_cast<std::int64_t>(std::exp2(middle - 0.125)) + 1,
                          static_cast<std::int64_t>(std::exp2(middle + 0.125))};
  return key;
}

cache::TrialRecord trial(int block_threads, int unroll, double us) {
  cache::TrialRecord record;
  record.candidate = {.policy = "block_threads=" + std::to_string(block_threads) + " vector_bytes=16 unroll=" +
                                std::to_string(unroll) + " tail=warp finish=last_block min_blocks=1",
                      .max_blocks = kSms,
                      .block_threads = block_threads,
                      .registers = 32,
                      .static_smem_bytes = 128,
                      .max_threads_per_block = 1024,
                      .resident_blocks = 2048 / block_threads};
  record.bytes_in_flight_per_sm = std::int64_t{16} * block_threads * unroll;
  record.predicted_us = us * 1.1;
  record.median_us = us;
  record.spread_us = us / 100;
  record.samples = 20;
  record.verdict = "ok";
  return record;
}

}  // namespace

cache::Publication tuned_sum(int k, const std::string& operation, const std::string& dtype) {
  cache::Publication publication;
  publication.key = key(k, 0, operation, dtype);
  const std::int64_t n = std::int64_t{1} << k, bytes = n * (dtype == "f16" ? 2 : 4) + 4;
  const double us = 2.66 + static_cast<double>(bytes) / 3.0e6;
  cache::TuningRecord tuning;
  tuning.compile_ms = 100;
  tuning.measure_ms = 50;
  for (const int unroll : {4, 2, 1})
    for (const int threads : {512, 256})
      tuning.trials.push_back(trial(threads, unroll, us * (1 + 0.1 * (4 - unroll)) * (threads == 512 ? 1 : 1.03)));
  tuning.trials.back().is_default = true;
  for (std::size_t i = 0; i < tuning.trials.size(); ++i)  // from the slowest to the fastest
    tuning.trials[i].sequence = static_cast<int>(tuning.trials.size() - i);
  for (const char* reason :
       {"pruned: narrower vectors than there might be", "spills: 16 bytes of local memory per thread"}) {
    cache::TrialRecord rejected = trial(1024, 8, 0);
    rejected.verdict = "rejected";
    rejected.reason = reason;
    tuning.trials.push_back(rejected);
  }
  publication.winner = {.candidate = tuning.trials.front().candidate,
                        .tuned = true,
                        .tuned_extents = {n, 1, 1},
                        .bytes_moved = bytes,
                        .median_us = us,
                        .spread_us = us / 100};
  publication.binary = {"cubin", "sm_90", std::vector<std::byte>(64)};
  publication.tuning = tuning;
  return publication;
}

cache::Publication lent_sum(int k) {
  cache::Publication publication = tuned_sum(k);
  publication.key = key(k, 0.5, "sum", "f32");
  publication.tuning.reset();
  return publication;
}

cache::Publication untuned_sum(int k) {
  cache::Publication publication = lent_sum(k);
  publication.key = key(k, 0, "sum", "f32");
  publication.winner.tuned = false;
  publication.winner.median_us = publication.winner.spread_us = 0;
  return publication;
}

cache::StoredWinner stored_winner(const cache::Publication& publication) {
  cache::StoredWinner winner;
  winner.key = publication.key;
  winner.winner = publication.winner;
  return winner;
}

testing::CommandRun ReportTest::hone(std::vector<std::string> words) const {
  return testing::run_hone(words, testing::isolated_environment(path_));
}

std::string ReportTest::page(std::vector<std::string> words) const {
  words.insert(words.begin(), {"report", "-o", page_.string()});
  const testing::CommandRun run = hone(words);
  EXPECT_EQ(run.code, 0) << run.err;
  std::ifstream in(page_, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json ReportTest::data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

void ReportTest::fill() const {
  std::vector<cache::Publication> publications;
  for (const char* operation : {"sum", "max"})
    for (const char* dtype : {"f32", "f16"})
      for (int k = 12; k <= 28; k += 4) publications.push_back(tuned_sum(k, operation, dtype));
  for (int k = 12; k <= 24; k += 4) publications.push_back(lent_sum(k));
  publications.push_back(untuned_sum(30));
  store_.publish(publications);
}

}  // namespace hone::tuner
