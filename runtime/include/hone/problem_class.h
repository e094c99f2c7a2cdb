// ProblemClass: the problems that share one winner.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <hone/problem.h>

namespace hone {

/// A Problem without its exact extents, pitches and scalars: family, operation, dtypes, numerics, NaN policy,
/// alignment, launch context, and a size class for each extent. Functions that decide something (which policies are
/// valid or worth measuring, what is compiled, how much workspace is needed) take the class, so that they decide alike
/// for every member. Functions that launch take the Problem.
class ProblemClass {
 public:
  /// The class of `member`. Implicit, so that a Problem can be passed where a class is expected.
  ProblemClass(const Problem& member);  // NOLINT(google-explicit-constructor)

  /// The member in the middle of the class, without pitches and scalars; equal for all members. A family may refuse it
  /// where memory holds only smaller members.
  const Problem& typical() const { return typical_; }

  const KernelFamily& family() const { return *typical_.family; }

  /// The extents of the members.
  const std::array<SizeRange, 3>& sizes() const { return sizes_; }

  /// The members whose extents are the first or the last of each range, in every combination.
  std::vector<Problem> corners() const;

  bool contains(const Problem& problem) const { return ProblemClass(problem) == *this; }

  /// Says in words how this class differs from `other`; "" if they are equal.
  std::string difference(const ProblemClass& other) const;

  bool operator==(const ProblemClass& other) const;

 private:
  Problem typical_;
  std::array<SizeRange, 3> sizes_;
};

/// Names a class in messages, by its typical member: "reduce sum f32 n≈1048576".
std::string to_string(const ProblemClass& problem_class);

}  // namespace hone
