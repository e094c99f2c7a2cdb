#include "tuner/array/reduce_axis_command.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>
#include <hone/reduce_axis.h>

#include <vector>

#include "tuner/array/axis.h"
#include "tuner/array/npy.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// One value or two for each run along the axis: two are an axis of their own, the last.
std::vector<std::int64_t> result_shape(const InputFile& input, std::size_t axis, int values) {
  std::vector<std::int64_t> shape = input.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  if (values > 1) shape.push_back(values);
  return shape;
}

ArrayCall call_of(const ReduceSpec& spec, const AxisSplit& split) {
  ArrayCall call{.name = std::string(name(spec.op)), .problem = {}, .dtype = spec.result_dtype()};
  if (split.outer == 1 && split.inner == 1) {
    call.problem = reduce_problem(spec, split.along);
    call.launch = [=](Session& session, const void* in, void* out, Stream stream) {
      return tuned_reduce(session, spec, in, split.along, out, stream);
    };
    return call;
  }
  const ColumnsShape shape{.outer = split.outer, .reduced = split.along, .inner = split.inner};
  call.problem = reduce_columns_problem(spec, shape);
  call.launch = [=](Session& session, const void* in, void* out, Stream stream) {
    return tuned_reduce_columns(session, spec, in, shape, out, stream);
  };
  return call;
}

}  // namespace

ExitCode reduce_along_axis(const InputFile& input, ReduceSpec spec, const std::vector<ReduceOp>& ops,
                           const ArrayOptions& options, const Context& context) {
  const std::size_t axis = parse_axis(options.axis, input);
  const AxisSplit split = split_at(input.shape, axis);
  spec.dtype = input.dtype;
  std::vector<ArrayCall> calls;
  for (const ReduceOp op : ops) {
    if (info(op).needs_elements && split.along == 0 && split.outer * split.inner > 0)
      throw CommandError(ExitCode::usage,
                         fmt::format("'{}' has the shape {}: along axis {} there are no elements to take the {} of",
                                     printable(input.path.string()), npy_shape_text(input.shape), axis, name(op)));
    spec.op = op;
    calls.push_back(call_of(spec, split));
    calls.back().shape = result_shape(input, axis, info(op).outputs);
    const Problem& problem = calls.back().problem;
    if (const std::string refusal = refusal_of(problem); !refusal.empty())
      throw CommandError(ExitCode::usage, refusal);
  }
  return run_on_array(input, calls, options, context);
}

}  // namespace hone::tuner
