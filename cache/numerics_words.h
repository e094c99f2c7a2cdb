// The words of the column `numerics`, and the words for them in files and exports of earlier versions.
#pragma once

#include <string>
#include <string_view>

namespace hone::cache {

/// Before version 5 there was one kind of numerics, "reproducible", which is "fast" now. The same with ", NaN ignored".
inline constexpr std::string_view kFast = "fast";
inline constexpr std::string_view kReproducible = "reproducible";

/// The word that digests cover, so that those of earlier rows and exports hold. The new "reproducible" has a word of
/// its own, which no earlier row has.
inline std::string first_numerics(std::string_view numerics) {
  const auto with = [&](std::string_view word, std::string_view by) {
    return std::string(by).append(numerics.substr(word.size()));
  };
  if (numerics.starts_with(kFast)) return with(kFast, kReproducible);
  if (numerics.starts_with(kReproducible)) return with(kReproducible, "canonical");
  return std::string(numerics);
}

/// The word of today for one of an earlier version.
inline std::string renamed_numerics(std::string_view numerics) {
  if (!numerics.starts_with(kReproducible)) return std::string(numerics);
  return std::string(kFast).append(numerics.substr(kReproducible.size()));
}

}  // namespace hone::cache
