#include "tuner/array/transpose_command.h"

#include <fmt/core.h>

#include <hone/transpose.h>
#include <CLI/CLI.hpp>

#include <utility>

#include "tuner/array/npy.h"
#include "tuner/text/table.h"

namespace hone::tuner {

void set_up_transpose(CLI::App& app, ArrayOptions& options) {
  add_array_options(*app.add_subcommand("transpose"), options, false);
}

ExitCode run_transpose(const ArrayOptions& options, const Context& context) {
  if (options.file.empty()) throw CommandError(ExitCode::usage, "no file was given: hone transpose FILE -o OUT.npy");
  const InputFile input = open_array(options);
  const std::size_t axes = input.shape.size();
  if (axes < 2)
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' has the shape {}, and only arrays of two axes and more can be transposed{}",
                                   printable(input.path.string()), npy_shape_text(input.shape),
                                   input.data_offset == 0 ? "; give --shape ROWSxCOLUMNS" : ""));
  TransposeSpec spec{.element_bytes = info(input.dtype).size_bytes,
                     .rows = input.shape[axes - 2],
                     .columns = input.shape[axes - 1]};
  for (std::size_t i = 0; i + 2 < axes; ++i) spec.batch *= input.shape[i];
  ArrayCall call{.name = "transpose",
                 .problem = transpose_problem(spec),
                 .dtype = input.dtype,
                 .shape = input.shape,
                 .launch = [spec](Session& session, const void* in, void* out, Stream stream) {
                   return tuned_transpose(session, spec, in, out, stream);
                 }};
  std::swap(call.shape[axes - 2], call.shape[axes - 1]);
  return run_on_array(input, {call}, options, context);
}

}  // namespace hone::tuner
