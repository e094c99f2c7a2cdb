// tuned_all_reduce() beside ncclAllReduce() of partials and of whole arrays, on all GPUs of this machine: one process,
// one thread a GPU. Ends with 1 if ranks do not all get the same bits, a wrong sum, or no error where one is due.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "benchmarks/collectives/gpu.h"
#include "benchmarks/common/report.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;

struct Options {
  RunOptions run{.budget_ms = 1000};
  std::int64_t gpus = 0;  ///< 0: all
  std::int64_t first = 10, last = 30, step = 2;  ///< powers of two
  int rounds = 30, repetitions = 10000;
  bool has_faults = false, adds_zeros = false;
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe("Reductions over GPUs by Hone and NCCL, side by side. NCCL is libnccl.so.2, or what HONE_NCCL "
                        "names");
  command_line.add("--gpus", options.gpus, "GPUs (default: all)", 1, 1024);
  command_line.add("--first", options.first, "the smallest array has 2^N floats a GPU (default: 10)", 0, 34);
  command_line.add("--last", options.last, "the largest one (default: 30)", 0, 34);
  command_line.add("--step", options.step, "the step of N (default: 2)", 1, 34);
  command_line.add("--rounds", options.rounds, "batches of each (default: 30)");
  command_line.add("--repetitions", options.repetitions, "calls whose bits are compared (default: 10000)");
  command_line.add_flag("--faults", options.has_faults, "also ranks that ask for different things, and one that does "
                                                        "not call");
  command_line.add_flag("--zeros", options.adds_zeros, "exchange blocks as thousands of ranks do, by ncclAllReduce()");
  add_run_options(command_line, options.run);
}

/// One size, measured on all GPUs; times are those of the slowest.
struct Row {
  std::int64_t n = 0;
  std::string context;
  std::array<double, kContenderNames.size()> us{};
  int repetitions = 0;
  bool has_equal_bits = true, is_right = true;
  double found = 0, expected = 0;
};

/// Runs `work` for each GPU in a thread of its own. Throws what the first failure was.
void for_each_gpu(std::vector<std::unique_ptr<Gpu>>& gpus, const std::function<void(Gpu&, int, Meeting&)>& work) {
  Meeting meeting(static_cast<int>(gpus.size()));
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(*gpus[rank], static_cast<int>(rank), meeting);
      } catch (const std::exception& error) {
        meeting.fail(fmt::format("GPU {}: {}", rank, error.what()));
      }
    });
  threads.clear();
  if (const std::string why = meeting.failure(); !why.empty()) throw std::runtime_error(why);
}

/// So many calls that a batch takes about a millisecond.
int calls_for(std::int64_t n) { return n <= 1 << 20 ? 50 : n <= 1 << 26 ? 10 : 2; }

Row measure(std::vector<std::unique_ptr<Gpu>>& gpus, std::int64_t n, LaunchContext context, const Options& options) {
  Row row{.n = n, .context = std::string(name(context)), .repetitions = n <= 1 << 20 ? options.repetitions : 100};
  const auto ranks = gpus.size();
  std::vector<std::array<double, kContenderNames.size()>> us(ranks);
  std::vector<std::vector<float>> results(ranks);
  std::vector<double> sums(ranks);
  for_each_gpu(gpus, [&](Gpu& gpu, int rank, Meeting& meeting) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t c = 0; c < us[r].size(); ++c)
      us[r][c] = gpu.time_us(static_cast<Contender>(c), n, context, calls_for(n), options.rounds, meeting);
    results[r] = gpu.results(n, context, row.repetitions, meeting);
    sums[r] = gpu.local_sum(n);
  });
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t c = 0; c < row.us.size(); ++c) row.us[c] = std::max(row.us[c], us[r][c]);
    for (const float result : results[r])
      row.has_equal_bits = row.has_equal_bits && std::bit_cast<std::uint32_t>(result) ==
                                                     std::bit_cast<std::uint32_t>(results[0][0]);
    row.expected += sums[r];
  }
  row.found = results[0][0];
  const double allowed = 1e-5 * std::sqrt(static_cast<double>(n)) + 1e-6 * std::abs(row.expected);
  row.is_right = std::abs(row.found - row.expected) <= allowed;
  return row;
}

void print(const Row& row) {
  fmt::print("{:>6} {:>10} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>12.2f} {:>6} {}{}\n", row.context,
             fmt::format("2^{}", std::bit_width(static_cast<std::uint64_t>(row.n)) - 1), row.us[0], row.us[1],
             row.us[1] - row.us[0], row.us[2], row.us[3], row.us[4], row.repetitions,
             row.has_equal_bits ? "equal" : "DIFFERENT", row.is_right ? "" : " WRONG SUM");
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const Row& row) {
  nlohmann::ordered_json json{{"n", row.n}, {"context", row.context}};
  for (std::size_t c = 0; c < row.us.size(); ++c) json[fmt::format("{} us", kContenderNames[c])] = row.us[c];
  json["repetitions"] = row.repetitions;
  json["equal_bits"] = row.has_equal_bits;
  json["right"] = row.is_right;
  return json;
}

/// Both kinds of ranks that go wrong. The communicators are gone afterwards.
bool try_faults(std::vector<std::unique_ptr<Gpu>>& gpus) {
  std::vector<std::string> disagreements(gpus.size()), desertions(gpus.size());
  std::vector<double> waited(gpus.size());
  for_each_gpu(gpus, [&](Gpu& gpu, int rank, Meeting& meeting) {
    disagreements[static_cast<std::size_t>(rank)] = gpu.disagreement(1024);
    meeting.arrive();
    desertions[static_cast<std::size_t>(rank)] = gpu.desertion(waited[static_cast<std::size_t>(rank)]);
  });
  bool is_right = true;
  for (std::size_t r = 0; r < gpus.size(); ++r) {
    fmt::print("rank {}: {}\nrank {} after {:.0f} ms: {}\n", r, disagreements[r], r, waited[r], desertions[r]);
    is_right = is_right && !disagreements[r].empty() && (r == 1 || !desertions[r].empty());
  }
  return is_right;
}

bool run(const Options& options) {
  const auto cuda_devices = static_cast<std::int64_t>(device_names().size()) - 1;
  const int ranks = static_cast<int>(options.gpus > 0 ? options.gpus : cuda_devices);
  if (ranks < 1 || ranks > cuda_devices)
    throw std::runtime_error(fmt::format("{} GPUs were asked for, and there are {}: {}", ranks, cuda_devices,
                                         cuda_devices > 0 ? "give a smaller --gpus" : cuda_unavailable_reason()));
  const Nccl nccl;
  const std::vector<ncclComm*> communicators = nccl.init_all(ranks);
  std::vector<std::unique_ptr<Gpu>> gpus;
  CommunicatorOptions exchange;
  if (options.adds_zeros) exchange.most_ranks_of_all_gather = 0;
  for (int rank = 0; rank < ranks; ++rank)
    gpus.push_back(std::make_unique<Gpu>(rank, nccl, communicators[static_cast<std::size_t>(rank)], options.run,
                                         exchange, std::int64_t{1} << options.last));
  const std::string gpu_name = gpus.front()->session().device()->facts().name;
  fmt::print("{} × {}, NCCL {}, {}; µs of the slowest rank\n", ranks, gpu_name, nccl.version(), today());
  fmt::print("{:>6} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12} {:>6} bits\n", "", "n a GPU", "local", "Hone",
             "− local", "NCCL of 1", "local + 1", "NCCL arrays", "calls");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool is_right = true;
  for (const LaunchContext context : {LaunchContext::stream, LaunchContext::graph})
    for (std::int64_t power = options.first; power <= options.last; power += options.step) {
      const Row row = measure(gpus, std::int64_t{1} << power, context, options);
      print(row);
      rows.push_back(json_of(row));
      is_right = is_right && row.has_equal_bits && row.is_right;
    }
  if (options.has_faults && ranks > 1) {
    is_right = try_faults(gpus) && is_right;
    gpus.clear();
  } else {
    gpus.clear();
    for (ncclComm* const communicator : communicators) nccl.destroy(communicator);
  }
  write_json(options.run.json, {{"gpus", ranks}, {"device", gpu_name}, {"nccl", nccl.version()}, {"date", today()},
                                {"rows", rows}});
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program("collectives", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
                     [&] { return run(options); });
}
