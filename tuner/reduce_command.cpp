#include "tuner/reduce_command.h"

#include <fmt/core.h>

#include <hone/own_stream.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <ostream>
#include <type_traits>
#include <vector>

#include "tuner/cache_path.h"
#include "tuner/command_error.h"
#include "tuner/input_file.h"
#include "tuner/output_file.h"
#include "tuner/quantities.h"
#include "tuner/report.h"
#include "tuner/selection.h"
#include "tuner/reduce_axis_command.h"
#include "tuner/table.h"
#include "tuner/warm_call.h"

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
  ReduceSpec spec;
  ReducedValue value;
  std::string variant;
  std::int64_t blocks = 0;
  ChoiceSource source = ChoiceSource::memory;
  bool tuned = false;
  double warm_us = 0;
  double gbps = 0;
};

/// JSON has no infinities and no NaN: those are strings there.
ReducedValue floating_value(double value, int digits) {
  const std::string text = std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits);
  return {text, std::isfinite(value) ? Json(value) : Json(text)};
}

/// With the digits that reading it back needs (max_digits10); 16-bit floats as the floats that they are.
ReducedValue read_value(DType dtype, const std::byte* bytes) {
  return with_element_type(dtype, [&]<class T>(T value) -> ReducedValue {
    std::memcpy(&value, bytes, sizeof(T));
    if constexpr (std::is_class_v<T>) return floating_value(static_cast<double>(static_cast<float>(value)), 9);
    else if constexpr (std::is_floating_point_v<T>)
      return floating_value(static_cast<double>(value), std::numeric_limits<T>::max_digits10);
    else return {fmt::format("{}", value), value};
  });
}

/// The values of an operation that gives two are a list.
ReducedValue read_values(const ReduceSpec& spec, const std::vector<std::byte>& bytes) {
  const std::size_t size = info(spec.result_dtype()).size_bytes;
  ReducedValue first = read_value(spec.result_dtype(), bytes.data());
  if (info(spec.op).outputs == 1) return first;
  const ReducedValue second = read_value(spec.result_dtype(), bytes.data() + size);
  return {first.text + ", " + second.text, Json::array({first.json, second.json})};
}

/// What a list of operations leaves for one file: "every" is each operation that it can have.
std::vector<ReduceOp> ops_for(const std::string& text, const InputFile& input) {
  std::vector<ReduceOp> ops = parse_ops(text);
  const auto impossible = [&](ReduceOp op) {
    return info(op).inputs != 1 || !reduce_supports(op, input.dtype) || (info(op).needs_elements && input.elements == 0);
  };
  if (ops.size() == kReduceOps.size()) std::erase_if(ops, impossible);
  for (const ReduceOp op : ops)
    if (info(op).inputs != 1)
      throw CommandError(ExitCode::usage, fmt::format("{} takes two arrays, and hone reduce reads one file; call "
                                                      "tuned_dot() from a program", name(op)));
  return ops;
}

Reduction reduce_once(Session& session, const ReduceSpec& spec, const InputFile& input, const void* in, void* out,
                      Stream stream) {
  Device& device = *session.device();
  const auto call = [&] { return tuned_reduce(session, spec, in, input.elements, out, stream); };
  const Choice choice = call();
  std::vector<std::byte> bytes(info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs));
  device.copy_to_host(bytes.data(), out, bytes.size(), stream);
  device.synchronize(stream);

  const Problem problem = reduce_problem(spec, input.elements, alignment_of(in));
  Reduction reduction;
  reduction.spec = spec;
  reduction.value = read_values(spec, bytes);
  reduction.variant = problem.family->space().to_string(choice.winner->candidate.variant);
  reduction.blocks = choice.winner->candidate.geometry.max_blocks;
  reduction.source = choice.source;
  reduction.tuned = choice.winner->tuned;
  reduction.warm_us = time_warm_call(device, stream, [&] { call(); });
  reduction.gbps = bandwidth_gbps(problem.family->bytes_moved(problem), reduction.warm_us);
  return reduction;
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
    table.add_row({std::string(name(reduction.spec.op)), reduction.value.text, short_variant(reduction.variant),
                   fmt::format("{}", reduction.blocks), source_text(reduction.source, reduction.tuned), us_text(reduction.warm_us),
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
    json["results"].push_back({{"op", name(reduction.spec.op)},
                               {"result", reduction.value.json},
                               {"result_dtype", info(reduction.spec.result_dtype()).name},
                               {"variant", reduction.variant},
                               {"max_blocks", reduction.blocks},
                               {"source", name(reduction.source)},
                               {"tuned", reduction.tuned},
                               {"warm_us", reduction.warm_us},
                               {"gbps", reduction.gbps}});
  }
  context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

std::optional<DType> chosen_dtype(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_one_dtype(text);
}

ArrayOptions array_options(const ReduceOptions& options) {
  return {.file = options.file,
          .dtype = options.dtype,
          .shape = options.shape,
          .axis = options.axis,
          .output = options.output,
          .device = options.device,
          .cache = options.cache,
          .on_miss = options.on_miss,
          .budget = options.budget,
          .json = options.json};
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
  sub->add_option("--shape", options.shape)->take_last();
  sub->add_option("--axis", options.axis)->take_last();
  sub->add_option("--op", options.ops)->take_last();
  sub->add_option("--nan", options.nan)->take_last();
  sub->add_option("--accumulator", options.accumulator)->take_last();
  sub->add_option("--result", options.result)->take_last();
  sub->add_option("-o,--output", options.output)->take_last();
  sub->add_option("--device", options.device)->take_last();
  sub->add_option("--cache", options.cache)->take_last();
  sub->add_option("--on-miss", options.on_miss)->take_last();
  sub->add_option("--budget", options.budget)->take_last();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_reduce(const ReduceOptions& options, const Context& context) {
  if (options.file.empty()) throw CommandError(ExitCode::usage, "no file was given: hone reduce FILE");
  // Unknown words are refused before the file is read.
  parse_ops(options.ops);
  ReduceSpec spec{.nan = parse_nan_policy(options.nan),
                  .accumulator = chosen_dtype(options.accumulator),
                  .result = chosen_dtype(options.result)};
  const std::optional<DType> raw_dtype = chosen_dtype(options.dtype);
  const SessionOptions chosen = session_options(options, context);
  if (!options.axis.empty()) {
    const ArrayOptions array = array_options(options);
    const InputFile input = open_array(array);
    return reduce_along_axis(input, spec, ops_for(options.ops, input), array, context);
  }
  if (!options.shape.empty())
    throw CommandError(ExitCode::usage, "--shape makes a difference with --axis alone: without it all elements are reduced");
  const InputFile input = open_input(options.file, raw_dtype);
  const std::vector<ReduceOp> ops = ops_for(options.ops, input);
  spec.dtype = input.dtype;
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    if (ops.size() != 1)
      throw CommandError(ExitCode::usage, fmt::format("--output holds the result of one operation, and --op names {}",
                                                      ops.size()));
    output.emplace(options.output);
  }

  const std::shared_ptr<Device> device = open_device(options.device);
  const OwnStream stream(*device);
  const DeviceBuffer in = load_input(input, device, stream.get());
  const DeviceBuffer out(device, 2 * sizeof(std::int64_t));
  Session session(device, chosen);
  std::vector<Reduction> reductions;
  for (const ReduceOp op : ops) {
    spec.op = op;
    reductions.push_back(reduce_once(session, spec, input, in.data(), out.data(), stream.get()));
  }
  if (output) {
    const std::vector<std::int64_t> shape(info(spec.op).outputs == 1 ? 0U : 1U, info(spec.op).outputs);
    output->save(spec.result_dtype(), shape, out.data(), *device, stream.get());
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
