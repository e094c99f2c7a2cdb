// one_of() and its like: an option or argument declares the words that it takes, from which completions are made.
#pragma once

#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class Option;
}

namespace hone::tuner {

/// The kind of a value that stands behind an option, or in an argument's place.
enum class ValueKind {
  none,   ///< a flag
  words,  ///< one of ValueSet::words
  list,   ///< some of them, with commas between
  file,
  other,  ///< a number, a size, a name: nothing to offer
};

struct ValueSet {
  ValueKind kind = ValueKind::other;
  std::vector<std::string> words = {};
};

using Words = std::vector<std::string>;

/// `option` takes one of these words; or some of them with commas between, or `everything`. They are asked for when
/// completions are made.
void one_of(CLI::Option* option, std::function<Words()> words);
void some_of(CLI::Option* option, std::function<Words()> words, std::string_view everything);

/// The words of an array that lives as long as the program.
auto words_in(const std::ranges::range auto& words) {
  return [&words] { return Words(std::ranges::begin(words), std::ranges::end(words)); };
}

/// `option` takes a path.
void file_name(CLI::Option* option);

/// `option`, of several values, takes one each time it is given: what follows is no part of it.
CLI::Option* one_each(CLI::Option* option);

/// Returns what an option takes; ValueKind::other where it declares nothing.
ValueSet declared_values(const CLI::Option& option);

}  // namespace hone::tuner
