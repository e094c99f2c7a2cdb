#include "tuner/array/array_command.h"

#include <fmt/core.h>

#include <hone/own_stream.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <ostream>
#include <utility>

#include "tuner/array/axis.h"
#include "tuner/array/call_report.h"
#include "tuner/array/npy.h"
#include "tuner/context/cache_path.h"
#include "tuner/problems/selection.h"
#include "tuner/problems/shapes.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"

namespace hone::tuner {
namespace {

std::int64_t bytes_of(const ArrayCall& call) {
  auto bytes = static_cast<std::int64_t>(info(call.dtype).size_bytes);
  for (const std::int64_t extent : call.shape) bytes *= extent;
  return bytes;
}

void give_shape(InputFile& input, const std::string& text) {
  std::vector<std::int64_t> shape = parse_array_shape(text);
  const std::string file = printable(input.path.string());
  if (input.data_offset > 0)
    throw CommandError(ExitCode::usage, fmt::format("'{}' says itself that its shape is {}; leave --shape out", file,
                                                    npy_shape_text(input.shape)));
  const std::int64_t elements = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  if (elements != input.elements)
    throw CommandError(ExitCode::usage, fmt::format("'{}' has {} elements of {}, and --shape {} has {}", file,
                                                    input.elements, info(input.dtype).name, printable(text), elements));
  input.shape = std::move(shape);
}

}  // namespace

void add_array_options(CLI::App& command, ArrayOptions& options, bool has_axis) {
  file_name(command.add_option("FILE", options.file));
  one_of(command.add_option("--dtype", options.dtype)->take_last(), dtype_words);
  command.add_option("--shape", options.shape)->take_last();
  if (has_axis) command.add_option("--axis", options.axis)->take_last();
  file_name(command.add_option("-o,--output", options.output)->take_last());
  one_of(command.add_option("--device", options.device)->take_last(), words_in(kDeviceWords));
  file_name(command.add_option("--cache", options.cache)->take_last());
  one_of(command.add_option("--on-miss", options.on_miss)->take_last(), words_in(kMissPolicyWords));
  command.add_option("--budget", options.budget)->take_last();
  command.add_flag("--time", options.time)->disable_flag_override();
  command.add_flag("--json", options.json)->disable_flag_override();
}

SessionOptions session_options(const ArrayOptions& options, const Context& context) {
  SessionOptions result = context.environment.session_options();
  choose_cache(result, options.cache);
  result.report_cache_failure = [&context](std::string_view message) { warn_of_failed_cache(message, context); };
  if (!options.on_miss.empty()) {
    result.on_miss = parse_miss_policy(options.on_miss);
    result.report_untuned = {};
  }
  if (!options.budget.empty()) result.tune_budget = parse_duration(options.budget);
  return result;
}

InputFile open_array(const ArrayOptions& options) {
  InputFile input = open_input(options.file, parse_optional_dtype(options.dtype));
  require_c_order(input);
  if (!options.shape.empty()) give_shape(input, options.shape);
  return input;
}

Context report_context(const ArrayOptions& options, const Context& context) {
  const bool is_taken = is_standard_output(options.output);
  return {.out = is_taken ? context.err : context.out, .err = context.err, .environment = context.environment};
}

std::unique_ptr<OutputFile> open_output(const ArrayOptions& options, const InputFile& input,
                                        std::span<const DType> results, const Context& context) {
  if (options.output.empty()) return nullptr;
  if (results.size() != 1)
    throw CommandError(ExitCode::usage,
                       fmt::format("--output holds the result of one operation, and --op names {}", results.size()));
  return std::make_unique<OutputFile>(options.output, results.front(), context.out, std::vector{input.place});
}

ExitCode run_on_array(const InputFile& input, const std::vector<ArrayCall>& calls, const ArrayOptions& options,
                      const Context& context) {
  const SessionOptions chosen = session_options(options, context);
  std::vector<DType> results;
  for (const ArrayCall& call : calls) results.push_back(call.dtype);
  const std::unique_ptr<OutputFile> output = open_output(options, input, results, context);
  const std::shared_ptr<Device> device = open_device(options.device);
  const OwnStream stream(*device);
  const DeviceBuffer in = load_input(input, device, stream.get());
  std::int64_t out_bytes = 1;  // an empty array still needs an address
  for (const ArrayCall& call : calls) out_bytes = std::max(out_bytes, bytes_of(call));
  const DeviceBuffer out(device, static_cast<std::size_t>(out_bytes));
  Session session(device, chosen);
  CallReport report(input, *device, {"shape", input.shape});
  for (const ArrayCall& call : calls) {
    const std::string_view dtype = info(call.dtype).name;
    report.add(call.name, fmt::format("{} {}", dtype, npy_shape_text(call.shape)),
               {{"result_dtype", dtype}, {"shape", call.shape}},
               make_call(session, call.problem, stream.get(), options.time,
                         [&] { return call.launch(session, in.data(), out.data(), stream.get()); }));
  }
  if (output) output->save(calls.front().shape, out.data(), *device, stream.get());
  const Context said = report_context(options, context);
  options.json ? report.print_json(said) : report.print_text(Align::left, said);
  return ExitCode::ok;
}

}  // namespace hone::tuner
