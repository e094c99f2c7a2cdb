// tune_arguments(): the arguments with which `hone tune` tunes one problem.
#pragma once

#include <string>
#include <string_view>

#include <hone/problem.h>

namespace hone {

/// The arguments that name exactly the class of `problem`, without device and cache: "reduce_rows --op mean --dtype f16
/// --size 1000x64 --align 2 --accumulator f64 --nan ignore --context graph". "" for a family that is not built in: only
/// a program can tune it, with Session::tune().
std::string tune_arguments(const Problem& problem);

/// Spells a word for a POSIX shell, whatever it holds: as it is where that is safe, else in quotes, 'it'\''s'.
std::string shell_quoted(std::string_view word);

}  // namespace hone
