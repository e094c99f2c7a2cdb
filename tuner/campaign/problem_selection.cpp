#include "tuner/campaign/problem_selection.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>
#include <hone/tuned_reduce.h>

#include <optional>

#include "tuner/command_error.h"
#include "tuner/quantities.h"
#include "tuner/selection.h"
#include "tuner/table.h"

namespace hone::tuner {
namespace {

std::optional<DType> parse_optional_dtype(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return parse_one_dtype(text);
}

}  // namespace

std::vector<Problem> list_problems(const Selection& selection) {
  const std::vector<ReduceOp> ops = parse_ops(selection.ops);
  const std::vector<DType> dtypes = parse_dtypes(selection.dtypes);
  const std::vector<std::int64_t> sizes = parse_size_list(selection.sizes);
  const std::vector<std::uint32_t> alignments = parse_alignments(selection.alignments);
  const std::vector<LaunchContext> contexts = parse_contexts(selection.context);
  const NanPolicy nan = parse_nan_policy(selection.nan);
  const std::optional<DType> accumulator = parse_optional_dtype(selection.accumulator);
  const std::optional<DType> result = parse_optional_dtype(selection.result);
  const bool is_single = ops.size() == 1 && dtypes.size() == 1;  // what is not defined is then refused, not left out
  std::vector<Problem> problems;
  std::string refusal;
  const auto add = [&](ReduceOp op, DType dtype, std::int64_t size, std::uint32_t alignment) {
    Problem problem = reduce_problem(
        ReduceSpec{.op = op, .dtype = dtype, .nan = nan, .accumulator = accumulator, .result = result}, size, alignment);
    refusal = problem.family->refuse(problem);
    if (!refusal.empty()) return;
    for (const LaunchContext context : contexts) {
      problem.launch_context = context;
      problems.push_back(problem);
    }
  };
  for (const ReduceOp op : ops)
    for (const DType dtype : dtypes)
      for (const std::uint32_t alignment : alignments) {
        // An array is aligned to its element at least: those problems do not exist.
        if (alignment < info(dtype).size_bytes) continue;
        for (const std::int64_t size : sizes) add(op, dtype, size, alignment);
      }
  if (!problems.empty() && (!is_single || refusal.empty())) return problems;
  if (!refusal.empty()) throw CommandError(ExitCode::usage, fmt::format("no problem is left: {}", refusal));
  throw CommandError(ExitCode::usage, fmt::format("no problem is left: arrays of {} are aligned to their element at "
                                                  "least, --align {} is less",
                                                  printable(selection.dtypes), printable(selection.alignments)));
}

}  // namespace hone::tuner
