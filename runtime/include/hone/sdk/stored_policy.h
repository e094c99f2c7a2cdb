// stored_policy(): the policy that a row of a cache names, if its family has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hone/policy.h>
#include <hone/problem.h>

namespace hone {

/// The policy that `text` spells, for a problem of the row's class and a grid of at most `max_blocks` blocks of
/// `block_threads` threads; nullopt where the family has none like it, and `misfit`, if given, says why. Sessions do
/// not use such a row.
std::optional<Policy> stored_policy(const Problem& problem, std::string_view text, std::int64_t block_threads,
                                    std::int64_t max_blocks, std::string* misfit = nullptr);

}  // namespace hone
