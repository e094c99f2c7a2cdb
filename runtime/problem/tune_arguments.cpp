#include <hone/tune_arguments.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <hone/copy_spec.h>
#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>
#include <hone/softmax_spec.h>
#include <hone/transpose_spec.h>

namespace hone {
namespace {

bool is_built_in(const KernelFamily* family) {
  const std::array<const KernelFamily*, 9> known{&reduce_family(),
                                                 &reduce_rows_family(),
                                                 &reduce_columns_family(),
                                                 &segmented_reduce_family(DType::i32),
                                                 &segmented_reduce_family(DType::i64),
                                                 &softmax_family(),
                                                 &softmax_columns_family(),
                                                 &transpose_family(),
                                                 &copy_family()};
  return std::find(known.begin(), known.end(), family) != known.end();
}

}  // namespace

std::string tune_arguments(const Problem& problem) {
  if (!is_built_in(problem.family)) return "";
  std::string text = fmt::format("{} --op {} --dtype {} --size {}", problem.family->name(),
                                 problem.family->operations()[problem.operation], info(problem.dtype).name,
                                 shape_text(problem));
  const auto [in_pitch, out_pitch] = problem.pitches;
  if (in_pitch != 0 || out_pitch != 0) text += fmt::format(" --pitch {},{}", in_pitch, out_pitch);
  if (problem.alignment != kMaxAlignment) text += fmt::format(" --align {}", problem.alignment);
  if (problem.accumulator) text += fmt::format(" --accumulator {}", info(*problem.accumulator).name);
  if (problem.result) text += fmt::format(" --result {}", info(*problem.result).name);
  if (problem.nan == NanPolicy::ignore) text += " --nan ignore";
  if (problem.launch_context != LaunchContext::stream) text += fmt::format(" --context {}", name(problem.launch_context));
  return text;
}

std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace hone
