// launch_call(): how a tuned_…() function checks its arrays and launches.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <hone/candidate.h>
#include <hone/dtype.h>
#include <hone/problem.h>
#include <hone/stream.h>

namespace hone {

class Session;

/// An array of a call: `rows` rows of `columns` elements, `pitch` elements from the beginning of one to that of the
/// next.
struct CallArray {
  std::string_view name;
  const void* pointer = nullptr;
  std::int64_t rows = 1, columns = 0, pitch = 0;
  bool is_output = false;
  int may_replace = -1;  ///< of an output: the array, by its place in the call, that it may be; -1: none
};

/// Launches `problem` on arrays of its dtype, in the order of its family's buffers(), for a function of the name
/// `function`. Checks on every call what is no part of a problem's class: that the family takes the problem, that no
/// array is null or not aligned to its elements, and that none overlaps an output, unless that replaces it or its rows
/// lie in the gaps between the other's. Where an extent is 0, pointers may be null, nothing is launched, and
/// Choice::winner is null. A hit neither allocates nor waits. Thread-safe.
///
/// Throws Error: invalid_argument, which names the function, for what these checks find; otherwise as Session::launch.
Choice launch_call(Session& session, std::string_view function, const Problem& problem,
                   std::span<const CallArray> arrays, Stream stream);

}  // namespace hone
