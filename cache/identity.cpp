#include "cache/identity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hone::cache {
namespace {

using Field = std::pair<std::string_view, std::string_view>;

/// NVIDIA's kinds of memory on one bus width are at least 22 % apart (HBM3 of an H100 at 2619 MHz, HBM3e of an H200 at
/// 3201); an A100 of 80 GB reads 1512 or 1593 MHz.
constexpr double kMostClockRatio = 1.1;

std::vector<Field> fields_of(std::string_view identity) {
  std::vector<Field> fields;
  while (!identity.empty()) {
    const std::string_view text = identity.substr(0, identity.find(';'));
    identity.remove_prefix(std::min(identity.size(), text.size() + 1));
    const std::size_t equals = std::min(text.find('='), text.size());
    fields.emplace_back(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return fields;
}

bool is_near(std::string_view clock, std::string_view other) {
  const auto number = [](std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value > 0 ? static_cast<double>(value) : 0.0;
  };
  const double a = number(clock), b = number(other);
  return a > 0 && b > 0 && std::max(a, b) <= kMostClockRatio * std::min(a, b);
}

/// True if `fields` has this field, or need not have it.
bool agrees(const Field& field, const std::vector<Field>& fields) {
  const auto& key = field.first;
  const auto other = std::find_if(fields.begin(), fields.end(), [&](const Field& each) { return each.first == key; });
  if (other == fields.end()) return key == "name";
  return other->second == field.second || (key == "memory_clock_khz" && is_near(field.second, other->second));
}

}  // namespace

bool same_device(const DeviceRecord& a, const DeviceRecord& b) {
  if (a.kind != b.kind || a.architecture != b.architecture) return false;
  if (a.identity == b.identity) return true;
  const std::vector<Field> mine = fields_of(a.identity), theirs = fields_of(b.identity);
  const auto all_agree = [](const std::vector<Field>& some, const std::vector<Field>& others) {
    return std::all_of(some.begin(), some.end(), [&](const Field& field) { return agrees(field, others); });
  };
  return all_agree(mine, theirs) && all_agree(theirs, mine);
}

bool same_options(std::string_view compiler, std::string_view other) {
  const auto options = [](std::string_view identity) {
    identity.remove_prefix(std::min(identity.rfind(':'), identity.size()));
    return identity.substr(std::min(identity.find('+'), identity.size()));
  };
  return compiler.empty() || other.empty() || options(compiler) == options(other);
}

}  // namespace hone::cache
