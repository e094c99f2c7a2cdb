#include "tuner/problems/selection.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/error.h>

#include <algorithm>
#include <array>
#include <span>

#include "tuner/text/command_error.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr auto kDTypeNames = [] {
  std::array<std::string_view, kDTypes.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kDTypes[i].name;
  return names;
}();

constexpr auto kOpNames = [] {
  std::array<std::string_view, kReduceOps.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kReduceOps[i].name;
  return names;
}();

struct Alias {
  std::string_view word;
  DType dtype;
};

/// Beside DTypeInfo::array_name; not float, int and long, which NumPy, PyTorch and C++ do not agree on.
constexpr std::array<Alias, 4> kDTypeAliases{{
    {"half", DType::f16}, {"single", DType::f32}, {"double", DType::f64}, {"boolean", DType::boolean}}};

std::string_view our_dtype(std::string_view word) {
  for (const DTypeInfo& dtype : kDTypes)
    if (dtype.array_name == word) return dtype.name;
  for (const Alias& alias : kDTypeAliases)
    if (alias.word == word) return info(alias.dtype).name;
  return word;
}

/// A list with our own names of dtypes for others'.
std::string with_our_dtypes(std::string_view text) {
  std::string ours;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (begin > 0) ours += ',';
    ours += our_dtype(word);
    begin = end + 1;
  }
  return ours;
}

/// Index of `word` in `known`.
std::size_t pick(std::string_view kind, std::string_view word, std::span<const std::string_view> known) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) {
    throw CommandError(ExitCode::usage, printable(fmt::format("unknown {} '{}'{}; known are {}", kind, word,
                                                              did_you_mean(word, known), fmt::join(known, ", "))));
  }
  return static_cast<std::size_t>(found - known.begin());
}

std::vector<std::size_t> pick_list(std::string_view kind, std::string_view text,
                                   std::span<const std::string_view> known, std::string_view everything = kAll) {
  std::vector<std::string_view> known_or_all(known.begin(), known.end());
  known_or_all.push_back(everything);
  std::vector<std::size_t> chosen;
  const auto choose = [&](std::size_t index) {
    if (std::find(chosen.begin(), chosen.end(), index) == chosen.end()) chosen.push_back(index);
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t index = pick(kind, text.substr(begin, end - begin), known_or_all);
    if (index < known.size()) choose(index);
    for (std::size_t i = 0; index == known.size() && i < known.size(); ++i) choose(i);
    begin = end + 1;
  }
  return chosen;
}

void add_names(std::span<const std::string_view> names, std::vector<std::string_view>& known) {
  for (const std::string_view name : names)
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
}

bool is_device_name(std::string_view name) {
  if (name == "auto" || name == "host") return true;
  constexpr std::string_view kPrefix = "cuda:";
  // Five digits are more than any machine has devices, and fit an int.
  const std::string_view ordinal = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : std::string_view{};
  return !ordinal.empty() && ordinal.size() <= 5 &&
         std::all_of(ordinal.begin(), ordinal.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> family_words() {
  std::vector<std::string> words;
  for (const FamilyRow& row : built_in_families()) words.emplace_back(row.family().name());
  return words;
}

std::vector<std::string> operation_words() {
  std::vector<std::string_view> known;
  for (const FamilyRow& row : built_in_families()) add_names(row.family().operations(), known);
  return {known.begin(), known.end()};
}

std::vector<std::string> dtype_words() { return {kDTypeNames.begin(), kDTypeNames.end()}; }

std::vector<ReduceOp> parse_ops(std::string_view text) {
  std::vector<ReduceOp> ops;
  for (const std::size_t index : pick_list("operation", text, kOpNames, kEveryOp)) {
    ops.push_back(static_cast<ReduceOp>(index));
  }
  return ops;
}

std::vector<std::uint8_t> parse_operations(const KernelFamily& family, std::string_view text) {
  std::vector<std::uint8_t> operations;
  for (const std::size_t index : pick_list("operation", text, family.operations(), kEveryOp))
    operations.push_back(static_cast<std::uint8_t>(index));
  return operations;
}

std::vector<std::string_view> parse_operation_names(Families families, std::string_view text,
                                                    std::span<const std::string_view> others) {
  std::vector<std::string_view> known;
  for (const FamilyRow& row : families) add_names(row.family().operations(), known);
  add_names(others, known);
  // A name with a comma in it, as a user's family may have, is no list.
  if (const auto whole = std::find(known.begin(), known.end(), text); whole != known.end()) return {*whole};
  std::vector<std::string_view> names;
  for (const std::size_t index : pick_list("operation", text, known, kEveryOp)) names.push_back(known[index]);
  return names;
}

std::string_view parse_family_name(std::string_view text, Families families, std::span<const std::string_view> others) {
  std::vector<std::string_view> known;
  for (const FamilyRow& row : families) known.push_back(row.family().name());
  add_names(others, known);
  return known[pick("kernel family", text, known)];
}

std::vector<DType> parse_dtypes(std::string_view text) {
  std::vector<DType> dtypes;
  for (const std::size_t index : pick_list("dtype", with_our_dtypes(text), kDTypeNames))
    dtypes.push_back(kDTypes[index].dtype);
  return dtypes;
}

DType parse_one_dtype(std::string_view text) {
  return kDTypes[pick("dtype", with_our_dtypes(text), kDTypeNames)].dtype;
}

std::optional<DType> parse_optional_dtype(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return parse_one_dtype(text);
}

MissPolicy parse_miss_policy(std::string_view text) {
  return static_cast<MissPolicy>(pick("miss policy", text, kMissPolicyWords));
}

std::vector<std::uint32_t> parse_alignments(std::string_view text) {
  std::vector<std::uint32_t> alignments;
  for (const std::size_t index : pick_list("alignment", text, kAlignmentWords)) alignments.push_back(1U << index);
  return alignments;
}

std::vector<LaunchContext> parse_contexts(std::string_view text) {
  const std::size_t index = pick("launch context", text, kContextWords);
  if (index == 2) return {LaunchContext::stream, LaunchContext::graph};
  return {static_cast<LaunchContext>(index)};
}

NanPolicy parse_nan_policy(std::string_view text) {
  return static_cast<NanPolicy>(pick("NaN policy", text, kNanWords));
}

Numerics parse_numerics(std::string_view text) {
  return static_cast<Numerics>(pick("kind of numerics", text, kNumericsNames));
}

Objective parse_objective(std::string_view text) {
  return static_cast<Objective>(pick("objective", text, kObjectiveNames));
}

std::vector<std::string> parse_devices(const std::string& text) {
  std::vector<std::string> names = device_names();
  if (text == "auto") return {names.front()};
  if (text == kAll) {
    if (names.size() > 1) std::erase(names, "host");
    return names;
  }
  if (std::find(names.begin(), names.end(), text) == names.end()) open_device(text);  // says what is wrong
  return {text};
}

std::string known_devices() { return fmt::format("{}", fmt::join(device_names(), ", ")); }

std::shared_ptr<Device> open_device(const std::string& name) {
  if (!is_device_name(name)) {
    std::vector<std::string> names = device_names();
    names.insert(names.begin(), "auto");
    const std::vector<std::string_view> views(names.begin(), names.end());
    throw CommandError(ExitCode::usage, fmt::format("'{}' is no device name{}; devices here: {}, or auto for the first",
                                                    printable(name), did_you_mean(name, views), known_devices()));
  }
  try {
    return Device::open(name);
  } catch (const Error& error) {
    throw CommandError(ExitCode::device, error.code() == ErrorCode::not_found
                                             ? std::string(error.what())
                                             : fmt::format("{}; devices here: {}", error.what(), known_devices()));
  }
}

}  // namespace hone::tuner
