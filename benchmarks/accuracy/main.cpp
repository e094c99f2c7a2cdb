// Prints how accurate Hone's sums are, next to CUB's; ends with 1 if a float's error is beyond its bound or an
// integer's sum is not exact.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "benchmarks/accuracy/accuracy.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;

struct Options {
  RunOptions run;
  std::int64_t n = std::int64_t{1} << 30;
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe("Error of sums of up to 2^30 numbers, its bound, and CUB's error");
  add_run_options(command_line, options.run);
  command_line.add("-n", options.n, "elements (default: 2^30)", std::int64_t{4}, std::int64_t{1} << 30);
}

bool run(const Options& options) {
  Session session = make_session(options.run);
  const std::string& device = session.device()->facts().name;
  const DeviceBuffer memory(session.device(), static_cast<std::size_t>(options.n) * sizeof(float));
  const auto peers = make_peers(session.device());
  const std::vector<AccuracyRow> rows = measure_accuracy(session, peers, memory.data(), memory.size_bytes());
  fmt::print("{}, {} {}\n{}", device, today(), missing_peers(*session.device()), accuracy_table(rows));
  write_json(options.run.json, {{"device", device}, {"date", today()}, {"rows", to_json(rows)}});
  return std::all_of(rows.begin(), rows.end(),
                     [](const AccuracyRow& row) { return row.by != "Hone" || is_accurate(row); });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return hone::benchmarks::run_program(
      "accuracy", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run(options); });
}
