// Problems in words, and the problems that cache rows are of: how a campaign finds what a cache says of a problem.
#pragma once

#include <optional>
#include <string>

#include <hone/problem.h>

#include "cache/records.h"
#include "tuner/problems/families.h"

namespace hone::tuner {

/// The problem of these extents that a row's columns describe; nullopt where they describe none of ours.
std::optional<Problem> problem_of(const cache::ProblemRecord& record, const Extents& extents,
                                  Families families = built_in_families());

/// True if the problem is of the class that the columns describe.
bool is_described(const Problem& problem, const cache::ProblemRecord& record);

/// "sum f32 2^20", "reduce_rows sum f32 2^13x2^13", "softmax f16 2^13x2^13": of other families than the first, the
/// name, where the operation is not called the same; with what is not usual about it behind: "in f64", "to f16", "NaN
/// ignored", "align 4", "graph".
std::string problem_label(const Problem& problem);

/// The same without the size: what the problems of a size sweep have in common.
std::string sweep_label(const Problem& problem);

/// Same but for extents and pitches.
bool same_sweep(const Problem& a, const Problem& b);

}  // namespace hone::tuner
