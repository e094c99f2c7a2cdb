// Reductions of rows and of CSR segments next to CUB's segmented reductions, and sums of CSR segments next to
// cuSPARSE's product of a matrix and a vector of ones, on the same buffers, in one run. Without CUB (HONE_BUILD_PEERS)
// Hone is timed alone. Ends with 1 if results differ.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>

#include "benchmarks/common/ceilings.h"
#include "benchmarks/common/figures.h"
#include "benchmarks/common/input_arena.h"
#include "benchmarks/common/numbers.h"
#include "benchmarks/common/prepared_call.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/race_track.h"
#include "benchmarks/common/report.h"
#include "benchmarks/sweep/cells.h"
#include "benchmarks/sweep/summary.h"
#ifdef HONE_WITH_CUB
#include "benchmarks/peers/cub_segments.h"
#endif
#ifdef HONE_WITH_CUSPARSE
#include "benchmarks/peers/cusparse_sums.h"
#endif

namespace {

using namespace hone;
using namespace hone::benchmarks;
using Clock = std::chrono::steady_clock;

struct Options {
  RunOptions run{.budget_ms = 400};
  std::string shapes = "2^23x8,2^20x64,2^16x2^10,2^13x2^13,2^10x2^16,2^6x2^20,4x2^24,1000003x7,12289x4097,31x1048577";
  std::vector<std::string> kinds{"rows", "uniform", "power_law"}, ops{"sum", "max", "min"}, dtypes{"f32", "f16"};
  std::int64_t segments = 1'000'000, mean = 64;
  SettingOptions settings;
  double seconds = 240;
  TimingOptions timing{.cap_ms = 60};
  bool with_cub = true;
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe("Reductions of rows and of CSR segments by Hone and CUB, side by side");
  add_run_options(command_line, options.run);
  command_line.add("--kinds", options.kinds, "rows, uniform, power_law (default: all)",
                   {"rows", "uniform", "power_law"});
  command_line.add("--ops", options.ops, "sum, max, min (default: all)", {"sum", "max", "min"});
  command_line.add("--dtypes", options.dtypes, "f32, f16 (default: both)", {"f32", "f16"});
  command_line.add("--shapes", options.shapes, "of rows: 1024x64,2^20+1x8 (default: ten)");
  command_line.add("--segments", options.segments, "of CSR (default: 1000000)");
  command_line.add("--mean", options.mean, "elements of a CSR segment on average (default: 64)");
  add_setting_options(command_line, options.settings);
  command_line.add("--time", options.seconds, "begin no cell after so many seconds (default: 240)");
  add_timing_options(command_line, options.timing);
  command_line.add_flag("!--no-cub", options.with_cub, "time Hone alone");
}

/// Segments of an array: all of one length, or between offsets.
struct Segments {
  std::string kind;
  std::int64_t count = 0, length = 0;
  std::vector<std::int32_t> offsets = {};  ///< empty: all of `length`

  std::int64_t elements() const { return offsets.empty() ? count * length : offsets.back(); }
  std::string describe() const {
    if (offsets.empty()) return fmt::format("{} x {}", count, length);
    std::int32_t longest = 0;
    for (std::size_t i = 1; i < offsets.size(); ++i) longest = std::max(longest, offsets[i] - offsets[i - 1]);
    return fmt::format("{} of 0..{}", count, longest);
  }
};

/// Lengths between 0 and twice the mean, each as likely; or by a power law (Pareto, exponent 1.5 as in the degrees of
/// many graphs), a fifth of them empty, the longest at most a hundredth of all.
Segments csr_segments(const std::string& kind, std::int64_t count, std::int64_t mean) {
  std::mt19937_64 random(99);
  std::vector<double> lengths(static_cast<std::size_t>(count));
  std::uniform_real_distribution<double> share(0, 1);
  const double longest = std::max(1.0, 0.01 * static_cast<double>(count) * static_cast<double>(mean));
  for (double& length : lengths) {
    const double u = share(random);
    if (kind == "uniform") length = u * 2 * static_cast<double>(mean);
    else length = u < 0.2 ? 0 : std::min(longest, std::pow(1 - (u - 0.2) / 0.8, -1 / 1.5));
  }
  const double scale = static_cast<double>(count * mean) / std::accumulate(lengths.begin(), lengths.end(), 0.0);
  Segments segments{.kind = kind, .count = count, .length = mean, .offsets = {0}};
  for (const double length : lengths)
    segments.offsets.push_back(segments.offsets.back() + static_cast<std::int32_t>(std::lround(length * scale)));
  return segments;
}

std::vector<Segments> segments_of(const Options& options) {
  std::vector<Segments> all;
  for (const std::string& kind : options.kinds) {
    if (kind == "rows")
      for (const auto& [rows, columns] : parse_shapes(options.shapes))
        all.push_back({.kind = kind, .count = rows, .length = columns});
    else if (options.segments > (std::int64_t{1} << 30) / options.mean)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} segments of {} elements are more than offsets of 32 bits name", options.segments,
                              options.mean));
    else
      all.push_back(csr_segments(kind, options.segments, options.mean));
  }
  return all;
}

struct Row {
  Segments segments;
  std::string op = {}, dtype = {}, policy = {};
  std::int64_t bytes = 0;
  Setting setting = {};
  Timing hone = {};
  std::vector<PeerTiming> peers = {};  ///< CUB and cuSPARSE, where they have it
  PlainTiming read = {};               ///< of as many bytes

  bool agrees() const {
    return std::all_of(peers.begin(), peers.end(), [](const PeerTiming& peer) { return peer.agrees; });
  }
};

/// Device memory and the clock, for the whole run.
class Bench {
 public:
  Bench(Session& session, const Options& options, const std::vector<Segments>& all)
      : session_(session), device_(session.device()), options_(options), arena_(device_, arena_bytes(*device_, all)),
        track_(device_), ceilings_(device_, track_), stream_(*device_) {}

  void fill(DType dtype) { arena_.fill(dtype, nullptr); }

  Row run(const Segments& segments, ReduceOp op, DType dtype, const Setting& setting) {
    const ReduceSpec spec{.op = op, .dtype = dtype};
    const std::int64_t elements = segments.elements();
    Problem problem = segments.offsets.empty()
                          ? reduce_rows_problem(spec, {.rows = segments.count, .columns = segments.length})
                          : segmented_reduce_problem(spec, DType::i32, segments.count, elements);
    problem.launch_context = setting.context;
    PreparedCall call(session_, problem);
    Row row{segments};
    row.setting = setting;
    row.op = name(op);
    row.dtype = info(dtype).name;
    row.policy = call.policy();
    const InputLayout layout = arena_.layout(dtype, elements, 1, 0, options_.timing.most_calls);
    const DeviceBuffer offsets = upload(segments.offsets);
    const std::size_t out_bytes = static_cast<std::size_t>(segments.count) * info(spec.result_dtype()).size_bytes;
    const DeviceBuffer out(device_, out_bytes), cub_out(device_, out_bytes), cusparse_out(device_, out_bytes);
    row.bytes = elements * static_cast<std::int64_t>(info(dtype).size_bytes) +
                static_cast<std::int64_t>(out_bytes + offsets.size_bytes());

    std::vector<Contestant> contestants{{"Hone", [&](int turn, Stream on) {
                                           void* const in = arena_.at(layout, turn, 0);
                                           void* const rows[] = {in, out.data()};
                                           void* const csr[] = {in, offsets.data(), out.data()};
                                           if (segments.offsets.empty()) call.enqueue(rows, on);
                                           else call.enqueue(csr, on);
                                         }}};
    DeviceBuffer temp;
    if (options_.with_cub) add_cub(contestants, segments, op, dtype, layout, offsets, cub_out, temp);
    const std::size_t before_cusparse = contestants.size();
    if (options_.with_cub) add_cusparse(contestants, segments, op, dtype, layout, offsets, cusparse_out);
    for (const Contestant& contestant : contestants) contestant.enqueue(0, stream_.get());
    std::vector<bool> agrees;
    const std::vector<long double> ours = read(out, spec);
    if (before_cusparse > 1) agrees.push_back(agree(ours, read(cub_out, spec)));
    if (contestants.size() > before_cusparse) agrees.push_back(agree(ours, read(cusparse_out, spec)));
    const std::vector<const void*> inputs = arena_.inputs(layout);
    const PlainMove& read = ceilings_.fastest(inputs, nullptr, arena_.readable_bytes(layout, row.bytes));
    contestants.push_back({read.name, [&](int turn, Stream on) {
                             read.enqueue(inputs[static_cast<std::size_t>(turn) % inputs.size()], nullptr, on);
                           }});
    const std::vector<Timing> timings =
        track_.time(stream_.get(), setting, contestants, static_cast<std::size_t>(row.bytes), options_.timing);
    row.hone = timings[0];
    row.read = {read.name, timings.back()};
    for (std::size_t i = 1; i + 1 < timings.size(); ++i)
      row.peers.push_back({contestants[i].name, timings[i], agrees[i - 1]});
    return row;
  }

 private:
  static std::size_t arena_bytes(const Device& device, const std::vector<Segments>& all) {
    std::size_t bytes = 8 * cache_bytes(device.facts());
    for (const Segments& one : all) bytes = std::max(bytes, InputArena::bytes_for(DType::f32, one.elements(), 1));
    return bytes;
  }

  DeviceBuffer upload(const std::vector<std::int32_t>& offsets) {
    if (offsets.empty()) return {};
    DeviceBuffer memory(device_, offsets.size() * sizeof(std::int32_t));
    device_->copy_to_device(memory.data(), offsets.data(), memory.size_bytes(), nullptr);
    device_->synchronize(nullptr);
    return memory;
  }

  std::vector<long double> read(const DeviceBuffer& out, const ReduceSpec& spec) {
    std::vector<std::byte> bytes(out.size_bytes());
    device_->copy_to_host(bytes.data(), out.data(), bytes.size(), stream_.get());
    device_->synchronize(stream_.get());
    return decode(spec.result_dtype(), bytes);
  }

  /// Up to the rounding of different orders of adding. CUB gives the lowest finite value for the largest of none.
  static bool agree(const std::vector<long double>& ours, const std::vector<long double>& theirs) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const bool is_of_none = std::isinf(ours[i]);
      if (!is_of_none && std::fabs(ours[i] - theirs[i]) > 1e-3L * std::fabs(theirs[i])) return false;
    }
    return true;
  }

#ifdef HONE_WITH_CUB
  void add_cub(std::vector<Contestant>& contestants, const Segments& segments, ReduceOp op, DType dtype,
               const InputLayout& layout, const DeviceBuffer& offsets, const DeviceBuffer& out, DeviceBuffer& temp) {
    const auto all = cub_segments();
    const auto found = std::find_if(all.begin(), all.end(), [&](const CubSegments& one) {
      return one.operation == name(op) && one.dtype == info(dtype).name;
    });
    if (found == all.end()) return;
    const auto enqueue = [this, call = found->run, &segments, &layout, &offsets, &out, &temp](int turn, Stream on) {
      std::size_t temp_bytes = temp.size_bytes();
      const auto* const given = segments.offsets.empty() ? nullptr : offsets.as<const std::int32_t>();
      if (call(temp.data(), temp_bytes, arena_.at(layout, turn, 0), segments.count, given, segments.length, out.data(),
               static_cast<cudaStream_t>(on)) != cudaSuccess)
        throw Error(ErrorCode::device_failed, "CUB failed in " + segments.describe());
      if (!temp.data()) temp = DeviceBuffer(device_, std::max<std::size_t>(temp_bytes, 1));
    };
    enqueue(0, nullptr);  // asks for the size of the temporary storage
    contestants.push_back({"CUB", enqueue});
  }
#else
  void add_cub(std::vector<Contestant>&, const Segments&, ReduceOp, DType, const InputLayout&, const DeviceBuffer&,
               const DeviceBuffer&, DeviceBuffer&) {}
#endif

#ifdef HONE_WITH_CUSPARSE
  void add_cusparse(std::vector<Contestant>& contestants, const Segments& segments, ReduceOp op, DType dtype,
                    const InputLayout& layout, const DeviceBuffer& offsets, const DeviceBuffer& out) {
    if (segments.offsets.empty() || op != ReduceOp::sum) return;
    const auto sums = std::make_shared<CusparseSums>(device_, segments.offsets, offsets.data(), dtype,
                                                     arena_.at(layout, 0, 0), out.data());
    contestants.push_back({"cuSPARSE", [this, sums, &layout](int turn, Stream on) {
                             sums->enqueue(arena_.at(layout, turn, 0), on);
                           }});
  }
#else
  void add_cusparse(std::vector<Contestant>&, const Segments&, ReduceOp, DType, const InputLayout&, const DeviceBuffer&,
                    const DeviceBuffer&) {}
#endif

  Session& session_;
  std::shared_ptr<Device> device_;
  const Options& options_;
  InputArena arena_;
  RaceTrack track_;
  Ceilings ceilings_;
  OwnStream stream_;
};

std::string text_of(const Row& row) {
  const double found = gbps(static_cast<double>(row.bytes), row.hone.median_us);
  std::string text =
      fmt::format("{:<10}{:<4} {:<4}{:>22} {:<15}{:>10.1f}{:>7.0f}{:>7.1f}", row.segments.kind, row.op, row.dtype,
                  row.segments.describe(), name(row.setting), row.hone.median_us, found,
                  ceiling_of(row.read, row.hone, row.peers).percent(row.hone));
  for (const PeerTiming& peer : row.peers)
    text += fmt::format("{:>10.1f}{:>8.2f}", peer.timing.median_us, peer.timing.median_us / row.hone.median_us);
  return text + (row.agrees() ? "" : "  DIFFERENT RESULTS");
}

nlohmann::ordered_json to_json(const Row& row) {
  const double found = gbps(static_cast<double>(row.bytes), row.hone.median_us);
  nlohmann::ordered_json json{{"kind", row.segments.kind},   {"op", row.op},
                              {"dtype", row.dtype},          {"segments", row.segments.count},
                              {"elements", row.segments.elements()}, {"shape", row.segments.describe()},
                              {"variant", row.policy},      {"gbps", found}};
  add_timings(json, row.setting, row.hone, row.peers);
  add_ceiling(json, row.read, row.hone, row.peers);
  return json;
}

void print_summary(const std::vector<Row>& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<double>> groups;
  for (const Row& row : rows)
    for (const PeerTiming& peer : row.peers)
      groups[{row.segments.kind, name(row.setting), peer.peer}].push_back(peer.timing.median_us / row.hone.median_us);
  for (const auto& [group, ratios] : groups) {
    const auto& [kind, setting, peer] = group;
    fmt::print("{:<10}{:<15} {} / Hone: {}\n", kind, setting, peer, ratio_summary(ratios));
  }
}

bool run(const Options& options) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Session session = make_session(options.run);
  const std::vector<Segments> all = segments_of(options);
  Bench bench(session, options, all);
  bench.fill(DType::f32);
  fmt::print("{}, {}\n\n{:<10}{:<4} {:<4}{:>22} {:<15}{:>10}{:>7}{:>7}{:>10}{:>8}\n",
             session.device()->facts().name, today(), "kind", "op", "of", "segments", "in", "Hone us",
             "GB/s", "% ceil", "peer us", "ratio");

  nlohmann::ordered_json json = run_json(session.device()->facts(), options.run.budget_ms,
                                         {"kind", "op", "dtype", "shape", "context", "company"});
  std::vector<Row> rows;
  std::size_t cells = 0;
  for (const std::string& dtype : options.dtypes) {
    bench.fill(parse_dtype(dtype));
    for (const std::string& op : options.ops)
      for (const Segments& segments : all)
        for (const Setting& setting : options.settings.settings()) {
          ++cells;
          if (seconds() > options.seconds) continue;
          rows.push_back(bench.run(segments, parse_reduce_op(op), parse_dtype(dtype), setting));
          fmt::print("{}\n", text_of(rows.back()));
          std::fflush(stdout);
          json["rows"].push_back(to_json(rows.back()));
          write_json(options.run.json, json);
        }
  }
  fmt::print("\n");
  print_summary(rows);
  fmt::print("{} of {} cells in {:.0f} s, tuning included\n", rows.size(), cells, seconds());
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.agrees(); });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return hone::benchmarks::run_program(
      "segments_vs_cub", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run(options); });
}
