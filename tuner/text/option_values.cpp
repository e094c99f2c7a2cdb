#include "tuner/text/option_values.h"

#include <CLI/CLI.hpp>

#include <array>
#include <sstream>
#include <string_view>
#include <utility>

namespace hone::tuner {
namespace {

/// CLI11 keeps the name of a type with an option, for help texts that it writes itself. Ours has lines: a kind of
/// values, and the words.
struct KindName {
  std::string_view name;
  ValueKind kind;
};
constexpr std::array<KindName, 3> kKindNames{
    {{"words", ValueKind::words}, {"list", ValueKind::list}, {"file", ValueKind::file}}};

void declare(CLI::Option* option, std::string_view kind, std::function<Words()> words) {
  option->type_name_fn([kind, words = std::move(words)] {
    std::string text(kind);
    for (const std::string& word : words()) text.append("\n").append(word);
    return text;
  });
}

}  // namespace

void one_of(CLI::Option* option, std::function<Words()> words) { declare(option, "words", std::move(words)); }
void some_of(CLI::Option* option, std::function<Words()> words, std::string_view everything) {
  declare(option, "list", [words = std::move(words), everything] {
    Words all = words();
    all.emplace_back(everything);
    return all;
  });
}
void file_name(CLI::Option* option) {
  declare(option, "file", [] { return Words(); });
}

CLI::Option* one_each(CLI::Option* option) {
  return option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

ValueSet declared_values(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {.kind = ValueKind::none};
  std::istringstream lines(option.get_type_name());
  ValueSet values;
  std::string line;
  std::getline(lines, line);
  for (const KindName& each : kKindNames)
    if (line == each.name) values.kind = each.kind;
  if (values.kind != ValueKind::other)
    while (std::getline(lines, line)) values.words.push_back(line);
  return values;
}

}  // namespace hone::tuner
