#include "tuner/array_command.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>
#include <hone/own_stream.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>

#include "tuner/axis.h"
#include "tuner/cache_path.h"
#include "tuner/npy.h"
#include "tuner/output_file.h"
#include "tuner/quantities.h"
#include "tuner/report.h"
#include "tuner/selection.h"
#include "tuner/shapes.h"
#include "tuner/table.h"
#include "tuner/warm_call.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

/// A call that was made, as it is reported.
struct MadeCall {
  const ArrayCall* call = nullptr;
  std::string variant = {};  ///< empty: there was nothing to launch
  std::int64_t blocks = 0;
  ChoiceSource source = ChoiceSource::memory;
  bool tuned = false;
  double warm_us = 0;
  double gbps = 0;
};

std::int64_t bytes_of(const ArrayCall& call) {
  auto bytes = static_cast<std::int64_t>(info(call.dtype).size_bytes);
  for (const std::int64_t extent : call.shape) bytes *= extent;
  return bytes;
}

MadeCall make(const ArrayCall& call, Session& session, const void* in, void* out, Stream stream) {
  MadeCall made{.call = &call};
  const Choice choice = call.launch(session, in, out, stream);
  session.device()->synchronize(stream);
  if (choice.winner == nullptr) return made;
  made.variant = call.problem.family->space().to_string(choice.winner->candidate.variant);
  made.blocks = choice.winner->candidate.geometry.max_blocks;
  made.source = choice.source;
  made.tuned = choice.winner->tuned;
  made.warm_us = time_warm_call(*session.device(), stream, [&] { call.launch(session, in, out, stream); });
  made.gbps = bandwidth_gbps(call.problem.family->bytes_moved(call.problem), made.warm_us);
  return made;
}

std::string shape_of(const ArrayCall& call) {
  return fmt::format("{} {}", info(call.dtype).name, npy_shape_text(call.shape));
}

void print_text(const InputFile& input, const Device& device, const std::vector<MadeCall>& calls, const Context& context) {
  context.out << fmt::format("{}: {} elements of {}, {} ({})\n", printable(input.path.string()), input.elements,
                             info(input.dtype).name, format_bytes(input.size_bytes()), input.layout);
  context.out << fmt::format("{}: {}\n\n", device.name(), printable(device.facts().name));
  Table table({{"op"},
               {"result"},
               {"candidate", Align::left, 2},
               {"blocks", Align::right, 3},
               {"from"},
               {"µs", Align::right},
               {"GB/s", Align::right},
               {"of peak", Align::right, 1}});
  for (const MadeCall& made : calls) {
    const bool was_launched = !made.variant.empty();
    table.add_row({made.call->name, shape_of(*made.call), was_launched ? short_variant(made.variant) : std::string(kUnknown),
                   was_launched ? fmt::format("{}", made.blocks) : std::string(kUnknown),
                   was_launched ? source_text(made.source, made.tuned) : "nothing to do", us_text(made.warm_us),
                   gbps_text(made.gbps), share_text(made.gbps, peak_bandwidth_gbps(device.facts()))});
  }
  table.print(context.out, context.environment.out_columns());
}

void print_json(const InputFile& input, const Device& device, const std::vector<MadeCall>& calls, const Context& context) {
  Json json{{"file", input.path.string()},
            {"dtype", info(input.dtype).name},
            {"shape", input.shape},
            {"device", device.name()},
            {"device_name", device.facts().name},
            {"peak_bandwidth_gbps", peak_bandwidth_gbps(device.facts())},
            {"results", Json::array()}};
  for (const MadeCall& made : calls)
    json["results"].push_back({{"op", made.call->name},
                               {"result_dtype", info(made.call->dtype).name},
                               {"shape", made.call->shape},
                               {"variant", made.variant.empty() ? Json(nullptr) : Json(made.variant)},
                               {"max_blocks", made.blocks},
                               {"source", name(made.source)},
                               {"tuned", made.tuned},
                               {"warm_us", made.warm_us},
                               {"gbps", made.gbps}});
  context.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

SessionOptions session_options(const ArrayOptions& options, const Context& context) {
  SessionOptions result = context.environment.session_options();
  choose_cache(result, options.cache);
  if (!options.on_miss.empty()) result.on_miss = parse_miss_policy(options.on_miss);
  if (!options.budget.empty()) result.tune_budget = parse_duration(options.budget);
  return result;
}

void give_shape(InputFile& input, const std::string& text) {
  const std::vector<TypedShape> shapes = parse_shapes(text);
  const std::string file = printable(input.path.string());
  if (shapes.size() != 1)
    throw CommandError(ExitCode::usage, fmt::format("'{}' stands for {} shapes; '{}' has one", printable(text),
                                                    shapes.size(), file));
  if (input.data_offset > 0)
    throw CommandError(ExitCode::usage, fmt::format("'{}' says itself that its shape is {}; leave --shape out", file,
                                                    npy_shape_text(input.shape)));
  std::int64_t elements = 1;
  for (const std::int64_t extent : shapes.front()) elements *= extent;
  if (elements != input.elements)
    throw CommandError(ExitCode::usage, fmt::format("'{}' has {} elements of {}, and --shape {} has {}", file, input.elements,
                                                    info(input.dtype).name, printable(text), elements));
  input.shape = shapes.front();
}

}  // namespace

void add_array_options(CLI::App& command, ArrayOptions& options, bool has_axis) {
  command.add_option("FILE", options.file);
  command.add_option("--dtype", options.dtype)->take_last();
  command.add_option("--shape", options.shape)->take_last();
  if (has_axis) command.add_option("--axis", options.axis)->take_last();
  command.add_option("-o,--output", options.output)->take_last();
  command.add_option("--device", options.device)->take_last();
  command.add_option("--cache", options.cache)->take_last();
  command.add_option("--on-miss", options.on_miss)->take_last();
  command.add_option("--budget", options.budget)->take_last();
  command.add_flag("--json", options.json)->disable_flag_override();
}

InputFile open_array(const ArrayOptions& options) {
  std::optional<DType> dtype;
  if (!options.dtype.empty()) dtype = parse_one_dtype(options.dtype);
  InputFile input = open_input(options.file, dtype);
  require_c_order(input);
  if (!options.shape.empty()) give_shape(input, options.shape);
  return input;
}

ExitCode run_on_array(const InputFile& input, const std::vector<ArrayCall>& calls, const ArrayOptions& options,
                      const Context& context) {
  const SessionOptions chosen = session_options(options, context);
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    if (calls.size() != 1)
      throw CommandError(ExitCode::usage, fmt::format("--output holds the result of one operation, and --op names {}",
                                                      calls.size()));
    output.emplace(options.output);
  }
  const std::shared_ptr<Device> device = open_device(options.device);
  const OwnStream stream(*device);
  const DeviceBuffer in = load_input(input, device, stream.get());
  std::int64_t out_bytes = 1;  // an empty array still needs an address
  for (const ArrayCall& call : calls) out_bytes = std::max(out_bytes, bytes_of(call));
  const DeviceBuffer out(device, static_cast<std::size_t>(out_bytes));
  Session session(device, chosen);
  std::vector<MadeCall> made;
  for (const ArrayCall& call : calls) made.push_back(make(call, session, in.data(), out.data(), stream.get()));
  if (output) output->save(calls.front().dtype, calls.front().shape, out.data(), *device, stream.get());
  if (const SessionCounters counters = session.counters(); counters.cache_failures > 0)
    context.err << "hone: warning: the cache could not be used, so this was slower than it need be: "
                << counters.last_cache_failure << '\n';
  if (options.json) {
    print_json(input, *device, made, context);
  } else {
    print_text(input, *device, made, context);
  }
  return ExitCode::ok;
}

}  // namespace hone::tuner
