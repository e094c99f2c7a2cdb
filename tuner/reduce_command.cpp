#include "tuner/reduce_command.h"

#include <fmt/core.h>

#include <hone/session.h>
#include <hone/tuned_reduce.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <ostream>
#include <vector>

#include "tuner/cache_path.h"
#include "tuner/input_file.h"
#include "tuner/quantities.h"
#include "tuner/report.h"
#include "tuner/selection.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

/// A result of any dtype, with its spelling.
struct ReducedValue {
  std::string text;
  Json json;
};

/// One operation on the input, as it is reported.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  ReducedValue value;
  std::string variant;
  std::int64_t blocks = 0;
  ChoiceSource source = ChoiceSource::memory;
  bool tuned = false;
  double warm_us = 0;
  double gbps = 0;
};

/// A stream of the device for as long as the command runs.
class OwnStream {
 public:
  explicit OwnStream(Device& device) : device_(device), stream_(device.create_stream()) {}
  ~OwnStream() { device_.destroy_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  Stream get() const { return stream_; }

 private:
  Device& device_;
  Stream stream_;
};

template <class T>
T value_of(const std::array<std::byte, 8>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// JSON has no infinities and no NaN: those are strings there.
ReducedValue floating_value(double value, int digits) {
  const std::string text = std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits);
  return {text, std::isfinite(value) ? Json(value) : Json(text)};
}

/// With the digits that reading it back needs (max_digits10).
ReducedValue read_value(DType dtype, const std::array<std::byte, 8>& bytes) {
  switch (dtype) {
    case DType::f32:
      return floating_value(static_cast<double>(value_of<float>(bytes)), 9);
    case DType::f64:
      return floating_value(value_of<double>(bytes), 17);
    case DType::i32:
      return {fmt::format("{}", value_of<std::int32_t>(bytes)), value_of<std::int32_t>(bytes)};
    case DType::i64:
      return {fmt::format("{}", value_of<std::int64_t>(bytes)), value_of<std::int64_t>(bytes)};
  }
  return {};
}

/// The median over a few calls on the hit path: one call alone varies by a microsecond.
double time_warm_call(Device& device, Stream stream, const std::function<void()>& call) {
  std::array<double, 5> samples{};
  for (double& sample : samples) sample = device.time_us(stream, call);
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

Reduction reduce_once(Session& session, ReduceOp op, const InputFile& input, const void* in, void* out, Stream stream) {
  Device& device = *session.device();
  const auto call = [&] { return tuned_reduce(session, op, input.dtype, in, input.elements, out, stream); };
  const Choice choice = call();
  std::array<std::byte, 8> bytes{};
  const DType result_dtype = reduce_result_dtype(op, input.dtype);
  device.copy_to_host(bytes.data(), out, info(result_dtype).size_bytes, stream);
  device.synchronize(stream);

  const Problem problem = reduce_problem(op, input.dtype, input.elements, alignment_of(in));
  Reduction reduction;
  reduction.op = op;
  reduction.value = read_value(result_dtype, bytes);
  reduction.variant = problem.family->space().to_string(choice.winner->candidate.variant);
  reduction.blocks = choice.winner->candidate.geometry.max_blocks;
  reduction.source = choice.source;
  reduction.tuned = choice.winner->tuned;
  reduction.warm_us = time_warm_call(device, stream, [&] { call(); });
  reduction.gbps = bandwidth_gbps(problem.family->bytes_moved(problem), reduction.warm_us);
  return reduction;
}

/// Where the candidate came from, in the words of the help text.
std::string source_text(const Reduction& reduction) {
  switch (reduction.source) {
    case ChoiceSource::tuned:
      return "tuned now";
    case ChoiceSource::heuristic:
      return "heuristic";
    case ChoiceSource::cache:
      return reduction.tuned ? "cache" : "cache, untuned";
    case ChoiceSource::memory:
      return reduction.tuned ? "memory" : "memory, untuned";
  }
  return {};
}

void print_text(const InputFile& input, const Device& device, const std::vector<Reduction>& reductions,
                const Context& context) {
  context.out << fmt::format("{}: {} elements of {}, {} ({})\n", printable(input.path.string()), input.elements,
                             info(input.dtype).name, format_bytes(input.size_bytes()), input.layout);
  context.out << fmt::format("{}: {}\n\n", device.name(), printable(device.facts().name));
  Table table({{"op"},
               {"result", Align::right},
               {"candidate", Align::left, 2},
               {"blocks", Align::right, 3},
               {"from"},
               {"µs", Align::right},
               {"GB/s", Align::right},
               {"of peak", Align::right, 1}});
  for (const Reduction& reduction : reductions) {
    table.add_row({std::string(name(reduction.op)), reduction.value.text, short_variant(reduction.variant),
                   fmt::format("{}", reduction.blocks), source_text(reduction), us_text(reduction.warm_us),
                   gbps_text(reduction.gbps), share_text(reduction.gbps, peak_bandwidth_gbps(device.facts()))});
  }
  table.print(context.out, context.environment.out_columns());
  if (input.elements == 0) context.out << "\nThere are no elements: these are the identities.\n";
}

void print_json(const InputFile& input, const Device& device, const std::vector<Reduction>& reductions,
                const Context& context) {
  Json json{{"file", input.path.string()},
            {"dtype", info(input.dtype).name},
            {"elements", input.elements},
            {"device", device.name()},
            {"device_name", device.facts().name},
            {"peak_bandwidth_gbps", peak_bandwidth_gbps(device.facts())},
            {"results", Json::array()}};
  for (const Reduction& reduction : reductions) {
    json["results"].push_back({{"op", name(reduction.op)},
                               {"result", reduction.value.json},
                               {"result_dtype", info(reduce_result_dtype(reduction.op, input.dtype)).name},
                               {"variant", reduction.variant},
                               {"max_blocks", reduction.blocks},
                               {"source", name(reduction.source)},
                               {"tuned", reduction.tuned},
                               {"warm_us", reduction.warm_us},
                               {"gbps", reduction.gbps}});
  }
  context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

SessionOptions session_options(const ReduceOptions& options, const Context& context) {
  SessionOptions result = context.environment.session_options();
  choose_cache(result, options.cache);
  if (!options.on_miss.empty()) result.on_miss = parse_miss_policy(options.on_miss);
  if (!options.budget.empty()) result.tune_budget = parse_duration(options.budget);
  return result;
}

}  // namespace

void set_up_reduce(CLI::App& app, ReduceOptions& options) {
  CLI::App* sub = app.add_subcommand("reduce");
  sub->add_option("FILE", options.file);
  sub->add_option("--dtype", options.dtype)->take_last();
  sub->add_option("--op", options.ops)->take_last();
  sub->add_option("--device", options.device)->take_last();
  sub->add_option("--cache", options.cache)->take_last();
  sub->add_option("--on-miss", options.on_miss)->take_last();
  sub->add_option("--budget", options.budget)->take_last();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_reduce(const ReduceOptions& options, const Context& context) {
  if (options.file.empty()) throw CommandError(ExitCode::usage, "no file was given: hone reduce FILE");
  const std::vector<ReduceOp> ops = parse_ops(options.ops);
  std::optional<DType> raw_dtype;
  if (!options.dtype.empty()) raw_dtype = parse_one_dtype(options.dtype);
  const SessionOptions chosen = session_options(options, context);
  const InputFile input = open_input(options.file, raw_dtype);

  const std::shared_ptr<Device> device = open_device(options.device);
  const OwnStream stream(*device);
  const DeviceBuffer in = load_input(input, device, stream.get());
  const DeviceBuffer out(device, sizeof(std::int64_t));
  Session session(device, chosen);
  std::vector<Reduction> reductions;
  for (const ReduceOp op : ops) {
    reductions.push_back(reduce_once(session, op, input, in.data(), out.data(), stream.get()));
  }
  const SessionCounters counters = session.counters();
  if (counters.cache_failures > 0) {
    context.err << "hone: warning: the cache could not be used, so this was slower than it need be: "
                << counters.last_cache_failure << '\n';
  }
  if (options.json) {
    print_json(input, *device, reductions, context);
  } else {
    print_text(input, *device, reductions, context);
  }
  return ExitCode::ok;
}

}  // namespace hone::tuner
