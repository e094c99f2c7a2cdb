// Shapes: lists of extents as people type them, and how they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/problem.h>

namespace hone::tuner {

/// The extents of one shape as they were typed, one to three.
using TypedShape = std::vector<std::int64_t>;

/// Shapes separated by commas or blanks, ascending and without repetition:
///
///     shape  := extent ["x" extent ["x" extent]] ["@" bound]
///     extent := sizes ["/" sizes]…          every one of them
///     sizes  := SIZE | SIZE..SIZE[":" SIZE]   A..B:F is A, A·F, A·F², … up to B; F is 2 unless said otherwise
///     bound  := SIZE | SIZE..SIZE             only shapes of at most, or of from … to, so many elements
///
/// SIZE is that of parse_size(). "2^10..2^20:2^2x64" are rows of 64, 2^10, 2^12, … 2^20 of them; "×" may stand for "x",
/// and blanks around it. 1024x1 is not 1x1024. Throws CommandError(usage): for other texts, for more than kMostShapes,
/// and for a shape of more than kMaxSize elements that no bound leaves out.
std::vector<TypedShape> parse_shapes(std::string_view text);

/// The shape of an array: sizes with an x between them, as many as there are axes, and any of them 0. Throws
/// CommandError(usage) for anything else, and for more than kMaxSize elements.
std::vector<std::int64_t> parse_array_shape(std::string_view text);

/// A list may stand for so many shapes: more would never be tuned.
inline constexpr std::size_t kMostShapes = 1 << 16;

/// The extents of a family that has `count` of them; of three, the first is 1 where two were typed: a batch of one.
/// nullopt for any other number.
std::optional<Extents> extents_of(const TypedShape& shape, std::size_t count);

/// "2^13x2^13", "1024", as format_size() has them.
std::string format_shape(const Problem& problem);

/// The same of extents of a family that uses `count` of them.
std::string format_shape(const Extents& extents, std::size_t count);

}  // namespace hone::tuner
