// Result checks: on which problems and inputs a candidate is verified, and what takes their place where time is short.
#pragma once

#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/kernel_family.h>

namespace hone {

/// One problem with one kind of input.
struct ResultCheck {
  Problem problem;
  std::string_view kind;  ///< as long as the family
};

/// The verified problems of the family, but for those that it refuses, and those of a class that `unit`, the code of
/// `policy`, does not serve.
std::vector<Problem> checked_problems(const Problem& problem, const Policy& policy, const Unit& unit);

/// These problems, each with all its kinds of input: first each with its first kind, then each with its second, so that
/// what comes first has the most variety.
std::vector<ResultCheck> result_checks(const Problem& problem, const Policy& policy, const Unit& unit);

/// `problem` with halved extents, odd ones odd and even ones even, until it is so small that its results are checked in
/// milliseconds on any device, or the code of `policy` would be another for anything smaller.
Problem small_problem(const DeviceFacts& facts, const Problem& problem, const Policy& policy);

}  // namespace hone
