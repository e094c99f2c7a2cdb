// tuned_all_reduce() beside ncclAllReduce() of partials and of whole arrays, on all GPUs of this machine, a thread or a
// process each. Ends with 1 if ranks do not all get the same bits, a wrong result, or no error where one is due.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <thread>

#include <fmt/format.h>
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
  bool has_faults = false, adds_zeros = false, has_softmax = false, has_processes = false,
       is_reproducible = false;
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
  command_line.add_flag("--softmax", options.has_softmax, "also tuned_all_softmax() of one row and of up to 4096, next "
                                                          "to the softmax of one GPU's part");
  command_line.add_flag("--reproducible", options.is_reproducible, "reproducible numerics, of the local calls, too");
  command_line.add_flag("--processes", options.has_processes, "a process for each GPU instead of a thread");
  add_run_options(command_line, options.run);
}

/// One size, measured on all GPUs; times are those of the slowest.
struct Row {
  std::int64_t n = 0;
  std::string context;
  std::array<double, kContenderNames.size()> us{};
  int repetitions = 0;
  bool has_equal_bits = true, is_right = true;
};

/// So many calls that a batch takes about a millisecond.
int calls_for(std::int64_t n) { return n <= 1 << 20 ? 50 : n <= 1 << 26 ? 10 : 2; }

bool is_steady(const std::vector<float>& results) {
  return std::ranges::all_of(results, [&](float result) {
    return std::bit_cast<std::uint32_t>(result) == std::bit_cast<std::uint32_t>(results.front());
  });
}

/// On every rank, which all get the same row.
Row measure(Gpu& gpu, int rank, Meeting& meeting, std::int64_t n, LaunchContext context, const Options& options) {
  Row row{.n = n, .context = std::string(name(context)), .repetitions = n <= 1 << 20 ? options.repetitions : 100};
  Finding& mine = meeting.findings[static_cast<std::size_t>(rank)];
  const Batches batches{.context = context, .calls = calls_for(n), .rounds = options.rounds};
  for (std::size_t c = 0; c < row.us.size(); ++c) mine.us[c] = gpu.time_us(static_cast<Contender>(c), n, batches);
  const std::vector<float> results = gpu.results(n, context, row.repetitions);
  mine.first_bits = std::bit_cast<std::uint32_t>(results.front());
  mine.is_steady = is_steady(results);
  mine.sum = gpu.local_sum(n);
  meeting.arrive();
  double expected = 0;
  for (const Finding& finding : std::span(meeting.findings).first(static_cast<std::size_t>(meeting.ranks()))) {
    for (std::size_t c = 0; c < row.us.size(); ++c) row.us[c] = std::max(row.us[c], finding.us[c]);
    row.has_equal_bits =
        row.has_equal_bits && finding.is_steady && finding.first_bits == meeting.findings[0].first_bits;
    expected += finding.sum;
  }
  meeting.arrive();
  const double allowed = 1e-5 * std::sqrt(static_cast<double>(n)) + 1e-6 * std::abs(expected);
  row.is_right = std::abs(static_cast<double>(results.front()) - expected) <= allowed;
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

struct SoftmaxRow {
  SoftmaxShape shape;
  std::string context;
  double local_us = 0, all_us = 0;
  double error = 0;  ///< ÷ what is allowed
};

/// How far this rank's part of the first and the last row is from what it should be, ÷ the error of expf() and of the
/// logarithm of the row's sum (hone/all_softmax.h). Elements are between −1 and 1.
double softmax_error(Gpu& gpu, int rank, Meeting& meeting, const SoftmaxShape& shape) {
  const auto [rows, columns, unused] = shape.extents;
  const std::vector<float> in = gpu.elements(rows * columns), out = gpu.softmax(shape);
  double worst = 0;
  for (const std::int64_t row : {std::int64_t{0}, rows - 1}) {
    const std::int64_t begin = row * columns;
    const auto at = [begin](std::int64_t column) { return static_cast<std::size_t>(begin + column); };
    double& mine = meeting.findings[static_cast<std::size_t>(rank)].sum;
    mine = 0;
    for (std::int64_t column = 0; column < columns; ++column) mine += std::exp(static_cast<double>(in[at(column)]));
    meeting.arrive();
    double sum = 0;
    for (int r = 0; r < meeting.ranks(); ++r) sum += meeting.findings[static_cast<std::size_t>(r)].sum;
    for (std::int64_t column = 0; column < columns; ++column) {
      const double y = static_cast<double>(in[at(column)]) - std::log(sum), exact = std::exp(y);
      const double allowed = exact * 0x1p-23 * (std::abs(y) + 8);
      const double error = std::abs(static_cast<double>(out[at(column)]) - exact) / allowed;
      worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error);
    }
    meeting.arrive();
  }
  return worst;
}

SoftmaxRow measure_softmax(Gpu& gpu, int rank, Meeting& meeting, const SoftmaxShape& shape, LaunchContext context,
                           const Options& options) {
  const Batches batches{.context = context, .calls = calls_for(shape.extents[0] * shape.extents[1]),
                      .rounds = options.rounds};
  SoftmaxRow row{.shape = shape, .context = std::string(name(context))};
  const double local = gpu.softmax_us(false, shape, batches), all = gpu.softmax_us(true, shape, batches);
  const double error = softmax_error(gpu, rank, meeting, shape);
  Finding& mine = meeting.findings[static_cast<std::size_t>(rank)];
  mine.us[0] = local;
  mine.us[1] = all;
  mine.error = error;
  meeting.arrive();
  for (const Finding& finding : std::span(meeting.findings).first(static_cast<std::size_t>(meeting.ranks()))) {
    row.local_us = std::max(row.local_us, finding.us[0]);
    row.all_us = std::max(row.all_us, finding.us[1]);
    row.error = std::max(row.error, finding.error);
  }
  meeting.arrive();
  return row;
}

void print(const SoftmaxRow& row) {
  fmt::print("{:>6} {:>14} {:>9.2f} {:>9.2f} {:>8.2f}{}\n", row.context,
             fmt::format("{} x {}", row.shape.extents[0], row.shape.extents[1]), row.local_us, row.all_us, row.error,
             row.error <= 1 ? "" : " WRONG");
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const SoftmaxRow& row) {
  return {{"rows", row.shape.extents[0]}, {"columns", row.shape.extents[1]}, {"context", row.context},
          {"local us", row.local_us}, {"Hone us", row.all_us}, {"error", row.error}};
}

/// Both kinds of ranks that go wrong. The communicator is gone afterwards.
bool try_faults(Gpu& gpu, int rank, Meeting& meeting) {
  double waited_ms = 0;
  const std::string disagreement = gpu.disagreement(1024);
  meeting.arrive();
  const std::string desertion = gpu.desertion(waited_ms);
  fmt::print("rank {}: {}\nrank {} after {:.0f} ms: {}\n", rank, disagreement, rank, waited_ms, desertion);
  return !disagreement.empty() && (rank == 1 || !desertion.empty());
}

constexpr std::array<LaunchContext, 2> kContexts{LaunchContext::stream, LaunchContext::graph};

/// All that one rank does; rank 0 prints.
bool run_rank(int rank, Meeting& meeting, const Options& options) {
  const Nccl nccl;
  CommunicatorOptions exchange;
  if (options.adds_zeros) exchange.most_ranks_of_all_gather = 0;
  const Numerics numerics = options.is_reproducible ? Numerics::reproducible : Numerics::fast;
  Gpu gpu(rank, nccl, meeting, options.run, exchange, numerics, std::int64_t{1} << options.last);
  const bool prints = rank == 0;
  bool is_right = true;
  const std::string gpu_name = gpu.session().device()->facts().name;
  if (prints) {
    fmt::print("{} × {}, {}, {} numerics, NCCL {}, {}; µs of the slowest rank\n", meeting.ranks(), gpu_name,
               options.has_processes ? "a process each" : "a thread each", name(numerics), nccl.version(), today());
    fmt::print("{:>6} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12} {:>6} bits\n", "", "n a GPU", "local", "Hone",
               "− local", "NCCL of 1", "local + 1", "NCCL arrays", "calls");
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), softmaxes = rows;
  for (const LaunchContext context : kContexts)
    for (std::int64_t power = options.first; power <= options.last; power += options.step) {
      const Row row = measure(gpu, rank, meeting, std::int64_t{1} << power, context, options);
      is_right = is_right && row.has_equal_bits && row.is_right;
      rows.push_back(json_of(row));
      if (prints) print(row);
    }
  if (options.has_softmax) {
    if (prints) fmt::print("{:>6} {:>14} {:>9} {:>9} {:>8}\n", "", "a GPU", "softmax", "of all", "error");
    for (const LaunchContext context : kContexts)
      for (std::int64_t power = options.first; power <= std::min<std::int64_t>(options.last, 26); power += options.step)
        for (const std::int64_t most_rows : {1, 4096}) {
          const std::int64_t n = std::int64_t{1} << power, count = std::min(most_rows, n / 16);
          if (count < 1 || (most_rows > 1 && count == 1)) continue;
          const SoftmaxRow row =
              measure_softmax(gpu, rank, meeting, SoftmaxShape::rows(count, n / count), context, options);
          is_right = is_right && row.error <= 1;
          softmaxes.push_back(json_of(row));
          if (prints) print(row);
        }
  }
  if (options.has_faults && meeting.ranks() > 1) is_right = try_faults(gpu, rank, meeting) && is_right;
  else gpu.destroy();
  if (prints)
    write_json(options.run.json, {{"gpus", meeting.ranks()}, {"device", gpu_name}, {"nccl", nccl.version()},
                                  {"date", today()}, {"processes", options.has_processes},
                                  {"numerics", name(numerics)}, {"rows", rows}, {"softmax", softmaxes}});
  return is_right;
}

/// The exit code of `work` in a process of its own; −1: it died. A process that has used CUDA cannot be forked.
pid_t start(const std::function<int()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child > 0) return child;
  const int code = work();
  std::fflush(stdout);
  _exit(code);
}

int exit_code(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Runs all ranks; the first failure is thrown.
bool run_ranks(Meeting& meeting, const Options& options) {
  std::atomic<bool> is_right = true;
  const auto run_one = [&](int rank) {
    try {
      return run_rank(rank, meeting, options);
    } catch (const std::exception& error) {
      meeting.fail(fmt::format("GPU {}: {}", rank, error.what()));
      return false;
    }
  };
  std::vector<pid_t> children;  // before there are threads
  if (options.has_processes)
    for (int rank = 0; rank < meeting.ranks(); ++rank)
      children.push_back(start([&] { return run_one(rank) ? 0 : 1; }));
  const auto wait_for = [&](int rank) {
    const int code = exit_code(children[static_cast<std::size_t>(rank)]);
    if (code < 0) meeting.fail(fmt::format("the process of GPU {} died", rank));
    return code == 0;
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < meeting.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      if (!(options.has_processes ? wait_for(rank) : run_one(rank))) is_right = false;
    });
  threads.clear();
  if (const std::string why = meeting.failure(); !why.empty()) throw std::runtime_error(why);
  return is_right;
}

bool run(const Options& options) {
  const int cuda_devices = exit_code(start([] { return static_cast<int>(device_names().size()) - 1; }));
  const int ranks = static_cast<int>(options.gpus > 0 ? options.gpus : cuda_devices);
  if (ranks < 1 || ranks > cuda_devices)
    throw std::runtime_error(fmt::format("{} GPUs were asked for, and there are {}: {}", ranks, cuda_devices,
                                         cuda_devices > 0 ? "give a smaller --gpus" : cuda_unavailable_reason()));
  return run_ranks(Meeting::make(ranks), options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_program("collectives", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
                     [&] { return run(options); });
}
