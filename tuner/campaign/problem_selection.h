// Selection: the problems that lists of words and sizes name.
#pragma once

#include <string>
#include <vector>

#include <hone/problem.h>

namespace hone::tuner {

/// As typed, on the command line or in a campaign file; see selection.h and quantities.h for the words.
struct Selection {
  std::string ops = "sum";
  std::string dtypes = "f32";
  std::string sizes = "2^10..2^24";
  std::string alignments = "16";
  std::string context = "stream";
  std::string nan = "propagate";
  std::string accumulator = {};  ///< "": the operation's own
  std::string result = {};
};

/// Every combination that exists: an alignment below that of the element is left out, and so is an operation that is not
/// defined for a dtype, unless the selection names nothing else. Throws CommandError(usage) when nothing is left, and for
/// words that mean nothing.
std::vector<Problem> list_problems(const Selection& selection);

}  // namespace hone::tuner
