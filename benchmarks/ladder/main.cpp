// The ladder: what each step of a tutorial buys, of sums, transposes, softmax or access, as one table. Ends with 1 if a
// step's result is wrong.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"
#include "benchmarks/ladder/matrix_steps.h"
#include "benchmarks/ladder/run.h"
#include "benchmarks/ladder/steps.h"
#include "benchmarks/sweep/cells.h"

namespace {

using namespace hone;
using namespace hone::benchmarks;

struct Options {
  RunOptions run;
  std::string what = "sum", sizes, shapes;
  std::int64_t error_elements = -1;
  std::string context = "stream";
  TimingOptions timing{.cap_ms = 300};
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe(
      "From a tutorial's first kernel to Hone, a step at a time: sums, transposes, softmax, patterns of access");
  command_line.add("--what", options.what, "sum (default), transpose, softmax or access",
                   {"sum", "transpose", "softmax", "access"});
  add_run_options(command_line, options.run);
  command_line.add("--sizes", options.sizes,
                   "of sums: 1000,2^20+1,2^8..2^30/2 (default: 2^14,2^18,2^22,2^27; on the host 2^10,2^14,2^18)");
  command_line.add("--shapes", options.shapes,
                   "of the others, rows x columns (default: 1024x1024,8192x8192, and 1048576x64 or 65536x1024)");
  command_line.add("--error-elements", options.error_elements,
                   "of the sum of 1.23f whose error is shown; 0: none (default: 10^8, on the host 10^6)");
  command_line.add("--context", options.context, "stream (default) or graph", {"stream", "graph"});
  add_timing_options(command_line, options.timing);
}

nlohmann::ordered_json to_json(const LadderRow& row) {
  const double found = gbps(static_cast<double>(row.bytes), row.timing.median_us);
  return {{"step", row.step},
          {"size", row.size},
          {"lines", row.lines},
          {"launches", row.launches},
          {"us", row.timing.median_us},
          {"spread_us", row.timing.spread_us},
          {"gbps", found},
          {"percent_of_ceiling", row.percent_of_ceiling()},
          {"is_right", row.fault.empty()}};
}

/// The ladders over matrices, by the words of --what.
struct NamedLadder {
  std::string_view name;
  MatrixLadder ladder;
  std::string_view default_shapes;
};
constexpr NamedLadder kMatrixLadders[] = {
    {"transpose", MatrixLadder::transpose, "1024x1024,8192x8192,1048576x64"},
    {"softmax", MatrixLadder::softmax, "1024x1024,8192x8192,65536x1024"},
    {"access", MatrixLadder::access, "1024x1024,8192x8192"},
};

const NamedLadder& ladder_of(std::string_view what) {
  return *std::find_if(std::begin(kMatrixLadders), std::end(kMatrixLadders),
                       [&](const NamedLadder& named) { return named.name == what; });
}

/// One size, or one shape.
struct Size {
  std::int64_t rows = 1, columns = 0;
};

std::vector<Size> sizes_of(const Options& options, const DeviceFacts& facts) {
  std::vector<Size> sizes;
  // Threads of the host device run one after the other.
  const std::string usual = facts.kind == "host" ? "2^10,2^14,2^18" : "2^14,2^18,2^22,2^27";
  if (options.what == "sum") {
    for (std::int64_t n : parse_sizes(options.sizes.empty() ? usual : options.sizes)) sizes.push_back({.columns = n});
  } else {
    std::string shapes = options.shapes;
    if (shapes.empty()) shapes = facts.kind == "host" ? "256x1024" : ladder_of(options.what).default_shapes;
    for (const auto& [rows, columns] : parse_shapes(shapes)) sizes.push_back({.rows = rows, .columns = columns});
  }
  for (const Size& size : sizes)
    if (size.rows > kMostLadderElements / std::max<std::int64_t>(size.columns, 1))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the ladder counts in 32 bits: {} × {} elements are too many", size.rows, size.columns));
  return sizes;
}

/// The array, what is written, and the copies that tuning and its check read.
constexpr std::int64_t kMostArrays = 4;

/// Returns the sizes that the device has room for, and prints the others.
std::vector<Size> sizes_that_fit(std::vector<Size> sizes, const Device& device) {
  const std::int64_t free_bytes = device.free_memory_bytes();
  const auto bytes = [](const Size& size) { return kMostArrays * size.rows * size.columns * 4; };
  std::erase_if(sizes, [&](const Size& size) {
    if (free_bytes == 0 || bytes(size) <= free_bytes) return false;
    fmt::print("left out: {} × {} takes {} MiB, {} has {} MiB of free memory\n", size.rows, size.columns,
               bytes(size) >> 20, device.name(), free_bytes >> 20);
    return true;
  });
  return sizes;
}

/// Names the steps that the device cannot run.
void say_left_out(const DeviceFacts& facts, nlohmann::ordered_json& json) {
  for (const LadderStep& step : ladder_steps()) {
    const std::string why = why_left_out(step, facts);
    if (why.empty()) continue;
    fmt::print("left out: {}: {}\n", step.name, why);
    json["left_out"].push_back({{"step", step.name}, {"why", why}});
  }
}

bool run(const Options& options) {
  Session session = make_session(options.run);
  const std::shared_ptr<Device>& device = session.device();
  const std::vector<Size> sizes = sizes_that_fit(sizes_of(options, device->facts()), *device);
  const bool is_sum = options.what == "sum";
  const LaunchContext context = options.context == "graph" ? LaunchContext::graph : LaunchContext::stream;

  std::size_t bytes = 8 * cache_bytes(device->facts());
  for (const Size& size : sizes)
    bytes = std::max(bytes, InputArena::bytes_for(DType::f32, size.rows * size.columns, 1));
  InputArena arena(device, bytes);
  const RaceTrack track(device);
  Ceilings ceilings(device, track);
  arena.fill(DType::f32, nullptr);
  fmt::print("{}, {} of f32 in a {}, {}\n", device->facts().name, options.what, options.context, today());

  nlohmann::ordered_json json{
      {"device", device->facts().name}, {"date", today()}, {"what", options.what}, {"context", options.context}};
  if (is_sum) say_left_out(device->facts(), json);
  std::vector<LadderRow> rows;
  for (const Size& size : sizes) {
    std::vector<LadderRow> found =
        is_sum ? run_ladder(session, arena, track, ceilings, size.columns, context, options.timing)
               : run_matrix_ladder(ladder_of(options.what).ladder, session, arena, track, ceilings, size.rows,
                                   size.columns, context, options.timing);
    for (LadderRow& row : found) rows.push_back(std::move(row));
  }
  fmt::print("\n{}\n{}", ladder_table(rows), is_sum ? sum_legend() : matrix_legend(ladder_of(options.what).ladder));

  const std::int64_t usual_elements = device->facts().kind == "host" ? 1'000'000 : 100'000'000;
  const std::int64_t error_elements = options.error_elements < 0 ? usual_elements : options.error_elements;
  if (is_sum && error_elements > 0) {
    const std::vector<LadderError> errors = ladder_errors(session, error_elements);
    fmt::print("\n{}", error_table(errors, error_elements));
    json["error_elements"] = error_elements;
    for (const LadderError& error : errors)
      json["errors"].push_back({{"step", error.step}, {"found", error.found}, {"error", error.error}});
  }

  bool is_right = true;
  for (const LadderRow& row : rows) {
    json["rows"].push_back(to_json(row));
    if (row.fault.empty()) continue;
    is_right = false;
    fmt::print("WRONG: {} of {}: {}\n", row.step, row.size, row.fault);
  }
  write_json(options.run.json, json);
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return hone::benchmarks::run_program(
      "ladder", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run(options); });
}
