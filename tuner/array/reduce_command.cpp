#include "tuner/array/reduce_command.h"

#include <fmt/core.h>

#include <hone/own_stream.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <ostream>
#include <type_traits>
#include <vector>

#include "tuner/array/call_report.h"
#include "tuner/array/reduce_axis_command.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

/// A result of any dtype, with its spelling.
struct ReducedValue {
  std::string text;
  Json json;
};

/// JSON has no infinities and no NaN: those are strings there.
ReducedValue floating_value(double value, int digits) {
  const std::string text = std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits);
  return {text, std::isfinite(value) ? Json(value) : Json(text)};
}

/// With the digits that reading it back needs (max_digits10); small floats as the floats that they are.
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

/// Returns what a list of operations leaves for one file: "every" is each operation that it can have.
std::vector<ReduceOp> ops_for(const std::string& text, const InputFile& input) {
  std::vector<ReduceOp> ops = parse_ops(text);
  const auto is_index = [](ReduceOp op) { return op == ReduceOp::argmin || op == ReduceOp::argmax; };
  const auto impossible = [&](ReduceOp op) {
    return info(op).inputs != 1 || !reduce_supports(op, input.dtype) ||
           (info(op).needs_elements && input.elements == 0) || (input.fortran_order && is_index(op));
  };
  if (ops.size() == kReduceOps.size()) std::erase_if(ops, impossible);
  if (input.fortran_order && std::any_of(ops.begin(), ops.end(), is_index))
    throw CommandError(ExitCode::usage,
                       "the elements are in Fortran order, where an index means another element than in "
                       "C order; save the array with numpy.ascontiguousarray(a)");
  for (const ReduceOp op : ops)
    if (info(op).inputs != 1)
      throw CommandError(ExitCode::usage, fmt::format("{} takes two arrays, and hone reduce reads one file; call "
                                                      "tuned_dot() from a program", name(op)));
  return ops;
}

/// All elements as one run: a value, or two, that the report shows.
ExitCode reduce_all(const InputFile& input, ReduceSpec spec, const std::vector<ReduceOp>& ops,
                    const ArrayOptions& options, const SessionOptions& chosen, const Context& context) {
  spec.dtype = input.dtype;
  std::vector<DType> results;
  for (const ReduceOp op : ops) {
    spec.op = op;
    results.push_back(spec.result_dtype());
  }
  const std::unique_ptr<OutputFile> output = open_output(options, input, results, context);
  const std::shared_ptr<Device> device = open_device(options.device);
  const OwnStream stream(*device);
  const DeviceBuffer in = load_input(input, device, stream.get());
  const DeviceBuffer out(device, 2 * sizeof(std::int64_t));
  Session session(device, chosen);
  CallReport report(input, *device, {"elements", input.elements});
  for (const ReduceOp op : ops) {
    spec.op = op;
    const Problem problem = reduce_problem(spec, input.elements, alignment_of(in.data()));
    const MadeCall made = make_call(session, problem, stream.get(), options.time, [&] {
      return tuned_reduce(session, spec, in.data(), input.elements, out.data(), stream.get());
    });
    std::vector<std::byte> bytes(info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(op).outputs));
    device->copy_to_host(bytes.data(), out.data(), bytes.size(), stream.get());
    device->synchronize(stream.get());
    const ReducedValue value = read_values(spec, bytes);
    report.add(name(op), value.text, {{"result", value.json}, {"result_dtype", info(spec.result_dtype()).name}}, made);
  }
  if (output) {
    const std::vector<std::int64_t> shape(info(spec.op).outputs == 1 ? 0U : 1U, info(spec.op).outputs);
    output->save(shape, out.data(), *device, stream.get());
  }
  const Context said = report_context(options, context);
  if (options.json) {
    report.print_json(said);
    return ExitCode::ok;
  }
  report.print_text(Align::right, said);
  if (input.elements == 0) said.out << "\nThere are no elements: these are the identities.\n";
  return ExitCode::ok;
}

}  // namespace

void set_up_reduce(CLI::App& app, ReduceOptions& options) {
  CLI::App* sub = app.add_subcommand("reduce");
  add_array_options(*sub, options.array, true);
  some_of(sub->add_option("--op", options.ops)->join(','), operation_words, kEveryOp);
  one_of(sub->add_option("--nan", options.nan)->take_last(), words_in(kNanWords));
  one_of(sub->add_option("--numerics", options.numerics)->take_last(), words_in(kNumericsNames));
  one_of(sub->add_option("--accumulator", options.accumulator)->take_last(), dtype_words);
  one_of(sub->add_option("--result", options.result)->take_last(), dtype_words);
}

ExitCode run_reduce(const ReduceOptions& options, const Context& context) {
  const ArrayOptions& array = options.array;
  if (array.file.empty()) throw CommandError(ExitCode::usage, "no file was given: hone reduce FILE");
  // Unknown words are refused before the file is read.
  parse_ops(options.ops);
  const ReduceSpec spec{.nan = parse_nan_policy(options.nan),
                        .accumulator = parse_optional_dtype(options.accumulator),
                        .result = parse_optional_dtype(options.result),
                        .numerics = parse_numerics(options.numerics)};
  const std::optional<DType> dtype = parse_optional_dtype(array.dtype);
  const SessionOptions chosen = session_options(array, context);
  if (!array.axis.empty()) {
    const InputFile input = open_array(array);
    return reduce_along_axis(input, spec, ops_for(options.ops, input), array, context);
  }
  if (!array.shape.empty())
    throw CommandError(ExitCode::usage,
                       "--shape makes a difference with --axis alone: without it all elements are reduced");
  const InputFile input = open_input(array.file, dtype);
  return reduce_all(input, spec, ops_for(options.ops, input), array, chosen, context);
}

}  // namespace hone::tuner
