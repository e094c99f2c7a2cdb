// did_you_mean(): the known word that a misspelt one was meant to be; and what compares words without letter case.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hone::tuner {

/// ASCII letters made small.
std::string lower_case(std::string_view text);

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The closest of `known` within a third of the word's length (at least one edit), or ""; letter case is ignored.
std::string_view closest(std::string_view word, std::span<const std::string_view> known);

/// " (did you mean 'sum'?)", or "" when nothing is close enough. To be appended to a message.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace hone::tuner
