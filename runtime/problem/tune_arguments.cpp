#include <hone/tune_arguments.h>

#include <algorithm>

#include <fmt/format.h>

#include <hone/sdk/family_table.h>

#include "cache/shell_quoted.h"

namespace hone {

std::string tune_arguments(const Problem& problem) {
  if (!is_built_in(*problem.family)) return "";
  Problem measured = problem;
  measured.extents[0] = std::max<std::int64_t>(measured.extents[0], 1);  // whose winner serves none, too
  std::string text = fmt::format("{} --op {} --dtype {} --size {}", problem.family->name(),
                                 problem.family->operations()[problem.operation], info(problem.dtype).name,
                                 shape_text(measured));
  const auto [in_pitch, out_pitch] = problem.pitches;
  if (in_pitch != 0 || out_pitch != 0) text += fmt::format(" --pitch {},{}", in_pitch, out_pitch);
  if (problem.alignment != kMaxAlignment) text += fmt::format(" --align {}", problem.alignment);
  if (problem.accumulator) text += fmt::format(" --accumulator {}", info(*problem.accumulator).name);
  if (problem.result) text += fmt::format(" --result {}", info(*problem.result).name);
  if (problem.nan == NanPolicy::ignore) text += " --nan ignore";
  if (problem.numerics != Numerics::fast) text += fmt::format(" --numerics {}", name(problem.numerics));
  if (problem.launch_context != LaunchContext::stream)
    text += fmt::format(" --context {}", name(problem.launch_context));
  return text;
}

std::string shell_quoted(std::string_view word) { return cache::shell_quoted(word); }

}  // namespace hone
