// hone transpose: the last two axes of the array in a file change places.
#pragma once

#include "tuner/array/array_command.h"

namespace hone::tuner {

void set_up_transpose(CLI::App& app, ArrayOptions& options);
ExitCode run_transpose(const ArrayOptions& options, const Context& context);

}  // namespace hone::tuner
