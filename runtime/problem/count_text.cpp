#include <hone/sdk/count_text.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {
namespace {

struct CountUnit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array<CountUnit, 9> kUnits{{{"k", 1000},
                                          {"K", 1000},
                                          {"M", 1'000'000},
                                          {"G", 1'000'000'000},
                                          {"T", 1'000'000'000'000},
                                          {"Ki", std::int64_t{1} << 10},
                                          {"Mi", std::int64_t{1} << 20},
                                          {"Gi", std::int64_t{1} << 30},
                                          {"Ti", std::int64_t{1} << 40}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Splits "64Ki" after its digits; underscores between digits are dropped.
std::pair<std::string, std::string_view> split_number(std::string_view text) {
  std::string digits;
  std::size_t end = 0;
  for (; end < text.size() && (is_digit(text[end]) || (text[end] == '_' && end > 0)); ++end) {
    if (text[end] != '_') digits.push_back(text[end]);
  }
  return {digits, text.substr(end)};
}

std::optional<std::int64_t> parse_integer(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// a·b, or nullopt past kMostCount.
std::optional<std::int64_t> multiply(std::optional<std::int64_t> a, std::int64_t b) {
  if (!a || (b != 0 && *a > kMostCount / b)) return std::nullopt;
  return *a * b;
}

std::optional<std::int64_t> multiply_by_power(std::optional<std::int64_t> value, std::int64_t base,
                                              std::int64_t exponent) {
  if (base <= 1) return base == 1 ? value : multiply(value, exponent == 0 ? 1 : 0);
  for (; exponent > 0 && value && *value != 0; --exponent) value = multiply(value, base);
  return value;
}

[[noreturn]] void reject(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

/// Returns what the unit behind a number stands for.
std::int64_t unit_factor(std::string_view name) {
  for (const CountUnit& unit : kUnits)
    if (unit.name == name) return unit.factor;
  reject(fmt::format("'{}' is no unit that is known here", name));
}

/// "1.5e6" and "1.5M": `whole`, a point and `behind`. Throws where that is no whole number.
std::optional<std::int64_t> evaluate_decimal(const std::string& whole, std::string_view behind) {
  auto [fraction, rest] = split_number(behind);
  while (fraction.ends_with('0')) fraction.pop_back();
  std::optional<std::int64_t> factor = 1;
  if (rest.starts_with('e') || rest.starts_with('E')) {
    const std::optional<std::int64_t> exponent = parse_integer(rest.substr(1));
    if (!exponent || *exponent < 0) reject("its exponent is not a number");
    factor = multiply_by_power(1, 10, *exponent);
  } else if (!rest.empty()) {
    factor = unit_factor(rest);
  }
  std::optional<std::int64_t> scale = multiply_by_power(1, 10, static_cast<std::int64_t>(fraction.size()));
  std::optional<std::int64_t> scaled = parse_integer(whole + fraction);
  if (!factor || !scale || !scaled) return std::nullopt;
  for (std::int64_t* const part : {&*scaled, &*factor}) {
    const std::int64_t common = std::gcd(*part, *scale);
    *part /= common;
    *scale /= common;
  }
  if (*scale != 1) reject("it is no whole number");
  return multiply(scaled, *factor);
}

}  // namespace

std::optional<std::int64_t> parse_count(std::string_view text) {
  if (text.starts_with('-')) reject("it is negative");
  const auto [digits, rest] = split_number(text);
  if (digits.empty()) reject(text.empty() ? "it is empty" : "it does not begin with a number");
  if (rest.starts_with('.')) return evaluate_decimal(digits, rest.substr(1));
  const std::optional<std::int64_t> number = parse_integer(digits);
  if (rest.empty()) return multiply(number, 1);
  if (rest.front() == '^' || rest.front() == 'e' || rest.front() == 'E') {
    const std::optional<std::int64_t> exponent = parse_integer(rest.substr(1));
    if (rest.size() < 2 || !std::all_of(rest.begin() + 1, rest.end(), is_digit)) {
      reject("its exponent is not a number");
    }
    if (!exponent || !number) return std::nullopt;
    return rest.front() == '^' ? multiply_by_power(1, *number, *exponent) : multiply_by_power(number, 10, *exponent);
  }
  return multiply(number, unit_factor(rest));
}

std::optional<std::int64_t> parse_byte_count(std::string_view text) {
  if (text.ends_with('B')) text.remove_suffix(1);
  try {
    return parse_count(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace hone
