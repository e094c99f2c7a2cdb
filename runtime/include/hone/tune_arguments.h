// tune_arguments(): the words that make `hone tune` tune one problem.
#pragma once

#include <string>
#include <string_view>

#include <hone/problem.h>

namespace hone {

/// "reduce_rows --op mean --dtype f16 --size 1000x64 --align 2 --accumulator f64 --nan ignore --context graph": exactly
/// the class of `problem`, without device and cache. "" for families that are not built in, which only a program can
/// tune (Session::tune()).
std::string tune_arguments(const Problem& problem);

/// A word as a shell reads it, whatever it holds: 'it'\''s'.
std::string shell_quoted(std::string_view word);

}  // namespace hone
