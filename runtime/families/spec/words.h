// Words of kernel source: runs of letters, digits and underscores.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>

namespace hone {

inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Returns true for a name of C++.
inline bool is_identifier(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), is_word);
}

/// Calls `on_word` with every word of a text, and `on_other` with what lies between them.
template <class OnWord, class OnOther>
void split_words(std::string_view text, OnWord on_word, OnOther on_other) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end]) == is_word(text[at])) ++end;
    if (is_word(text[at]))
      on_word(text.substr(at, end - at));
    else
      on_other(text.substr(at, end - at));
    at = end;
  }
}

/// Adds every word of a text.
inline void add_words(std::string_view text, std::set<std::string_view>& words) {
  split_words(
      text, [&](std::string_view word) { words.insert(word); }, [](std::string_view) {});
}

}  // namespace hone
