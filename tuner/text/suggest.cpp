#include "tuner/text/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace hone::tuner {

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: rows i−2, i−1 and i of the dynamic programme.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view closest(std::string_view word, std::span<const std::string_view> known) {
  // Long enough for every word of ours; keeps the quadratic work bounded whatever was typed.
  constexpr std::size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return {};
  const std::string wanted = lower_case(word);
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view guess = closest(word, known);
  return guess.empty() ? std::string{} : " (did you mean '" + std::string(guess) + "'?)";
}

}  // namespace hone::tuner
