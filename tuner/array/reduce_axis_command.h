// hone reduce --axis: one extent of the array in a file is reduced.
#pragma once

#include <vector>

#include <hone/tuned_reduce.h>

#include "tuner/array/array_command.h"

namespace hone::tuner {

/// Each operation along options.axis; `spec` says the rest. Throws Error and CommandError.
ExitCode reduce_along_axis(const InputFile& input, ReduceSpec spec, const std::vector<ReduceOp>& ops,
                           const ArrayOptions& options, const Context& context);

}  // namespace hone::tuner
