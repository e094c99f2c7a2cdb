// ProblemClass: the problems that share one winner.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <hone/problem.h>

namespace hone {

/// Everything of a Problem but its exact extents, its pitches and its scalars: family, operation, dtypes, numerics, NaN
/// policy, alignment, launch context and a size class for each extent. Whatever decides (which policies are valid, what
/// is worth measuring, what is compiled, how much workspace is needed) is given the class, so that it comes to the same
/// answer for every member; whatever launches is given the Problem.
class ProblemClass {
 public:
  /// The class that `member` belongs to. Implicit: a problem stands for its class where a class is asked for.
  ProblemClass(const Problem& member);  // NOLINT(google-explicit-constructor)

  /// A member in the middle of the class: the same for every member, without pitches and scalars. A family may refuse
  /// it, where a smaller one is all that memory holds.
  const Problem& typical() const { return typical_; }

  const KernelFamily& family() const { return *typical_.family; }

  /// The extents of the members.
  const std::array<SizeRange, 3>& sizes() const { return sizes_; }

  /// The members whose extents are the first and the last of each range, in every combination.
  std::vector<Problem> corners() const;

  bool contains(const Problem& problem) const { return ProblemClass(problem) == *this; }

  /// What two classes differ in, in words; "" where they are one.
  std::string difference(const ProblemClass& other) const;

  bool operator==(const ProblemClass& other) const;

 private:
  Problem typical_;
  std::array<SizeRange, 3> sizes_;
};

/// Names the class in messages, by its typical member: "reduce sum f32 n≈1048576".
std::string to_string(const ProblemClass& problem_class);

}  // namespace hone
