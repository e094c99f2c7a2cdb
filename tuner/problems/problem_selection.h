// Selection: the problems of a kernel family that lists of words and shapes name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/problem.h>

#include "tuner/problems/families.h"

namespace hone::tuner {

/// As typed, on the command line or in a campaign file; see families.h, selection.h and shapes.h for the words.
struct Selection {
  std::string family = "reduce";
  std::optional<std::string> ops = {};     ///< nullopt: what is usual for the family
  std::optional<std::string> dtypes = {};  ///< likewise
  std::optional<std::string> sizes = {};   ///< likewise
  std::string pitch = {};  ///< "": rows lie side by side; "IN" or "IN,OUT" in elements, "IN" for both
  std::string alignments = "16";
  std::string context = "stream";
  std::string nan = "propagate";
  std::string numerics = "fast";
  std::string accumulator = {};  ///< "": the operation's own
  std::string result = {};
};

/// Every combination that exists: an alignment below that of the element is left out, and so is an operation that is
/// not defined for a dtype, unless the selection names nothing else. Throws CommandError(usage) when nothing is left,
/// and for words that mean nothing, and for shapes that have other extents than the family's or are larger than any
/// memory.
std::vector<Problem> list_problems(const Selection& selection, Families families = built_in_families());

/// "argmax of bool": the operations and dtypes of the selection that list_problems() left out, since the operation is
/// not defined for the dtype.
std::vector<std::string> list_left_out(const Selection& selection, Families families = built_in_families());

/// parse_shapes() of a family: "reduce_rows has 2 extents (rows x columns), but '1024' has 1". Throws
/// CommandError(usage).
std::vector<Extents> parse_family_shapes(const KernelFamily& family, std::string_view text);

/// {0, 0} for "". Throws CommandError(usage).
Pitches parse_pitches(std::string_view text);

}  // namespace hone::tuner
