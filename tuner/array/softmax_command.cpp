#include "tuner/array/softmax_command.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>
#include <hone/softmax.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

#include "tuner/array/axis.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

double parse_scale(const std::string& text) {
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(scale)) return scale;
  throw CommandError(ExitCode::usage,
                     fmt::format("'{}' is no scale; it is a number such as 0.125, of a magnitude below 2^126, or "
                                 "2^1022 where elements or results are f64",
                                 printable(text)));
}

}  // namespace

void set_up_softmax(CLI::App& app, SoftmaxOptions& options) {
  CLI::App* sub = app.add_subcommand("softmax");
  options.array.axis = "-1";
  add_array_options(*sub, options.array, true);
  sub->add_option("--scale", options.scale)->take_last();
  one_of(sub->add_option("--result", options.result)->take_last(), dtype_words);
  one_of(sub->add_option("--numerics", options.numerics)->take_last(), words_in(kNumericsNames));
  sub->add_flag("--log", options.log)->disable_flag_override();
}

ExitCode run_softmax(const SoftmaxOptions& options, const Context& context) {
  if (options.array.file.empty())
    throw CommandError(ExitCode::usage, "no file was given: hone softmax FILE -o OUT.npy");
  // Unknown words are refused before the file is read.
  SoftmaxSpec spec{.result = parse_optional_dtype(options.result),
                   .scale = parse_scale(options.scale),
                   .numerics = parse_numerics(options.numerics)};
  const InputFile input = open_array(options.array);
  spec.dtype = input.dtype;
  const AxisSplit split = split_at(input.shape, parse_axis(options.array.axis, input));
  const SoftmaxShape shape = SoftmaxShape::axis(split.outer, split.along, split.inner);
  ArrayCall call{.name = options.log ? "log_softmax" : "softmax",
                 .problem = options.log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape),
                 .dtype = spec.result_dtype(),
                 .shape = input.shape};
  if (const std::string refusal = refusal_of(call.problem); !refusal.empty())
    throw CommandError(ExitCode::usage, refusal);
  call.launch = [spec, shape, log = options.log](Session& session, const void* in, void* out, Stream stream) {
    return log ? tuned_log_softmax(session, spec, in, shape, out, stream)
               : tuned_softmax(session, spec, in, shape, out, stream);
  };
  return run_on_array(input, {call}, options.array, context);
}

}  // namespace hone::tuner
