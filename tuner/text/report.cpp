#include "tuner/text/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tuner/text/quantities.h"

namespace hone::tuner {
namespace {

std::string short_parameter(std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string_view::npos) return std::string(item);
  const std::string_view name = item.substr(0, equals);
  const std::string_view value = item.substr(equals + 1);
  if (name == "block_threads") return fmt::format("{}t", value);
  if (name == "vector_bytes") return fmt::format("{}B", value);
  if (name == "unroll") return fmt::format("x{}", value);
  if (item == "min_blocks=1") return "";
  const bool is_number =
      std::all_of(value.begin(), value.end(), [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
  return std::string(is_number ? item : value);
}

}  // namespace

std::string short_policy(std::string_view policy) {
  std::string result;
  for (std::size_t begin = 0; begin < policy.size();) {
    const std::size_t end = std::min(policy.find(' ', begin), policy.size());
    const std::string text = short_parameter(policy.substr(begin, end - begin));
    if (!text.empty() && !result.empty()) result += ' ';
    result += text;
    begin = end + 1;
  }
  return result;
}

std::string blocks_cell(std::int64_t max_blocks) {
  if (Geometry{max_blocks}.is_block_per_tile()) return "1/tile";
  return max_blocks > 0 ? fmt::format("{}", max_blocks) : std::string(kUnknown);
}

std::string blocks_text(std::int64_t max_blocks) {
  if (Geometry{max_blocks}.is_block_per_tile()) return "a block for every tile";
  return fmt::format("at most {}", count_text(max_blocks, "block"));
}

double occupancy(int resident_blocks, int block_threads, int max_threads_per_sm) {
  if (max_threads_per_sm <= 0) return 0;
  return static_cast<double>(resident_blocks) * block_threads / max_threads_per_sm;
}

double bandwidth_gbps(std::int64_t bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1000 : 0;
}

std::string gbps_text(double gbps) {
  if (gbps <= 0) return std::string(kUnknown);
  if (gbps < 0.1) return fmt::format("{:.2g}", gbps);
  return fmt::format("{:.{}f}", gbps, gbps < 10 ? 2 : gbps < 100 ? 1 : 0);
}

std::string percent_text(double fraction) {
  if (fraction <= 0) return std::string(kUnknown);
  return fmt::format("{:.{}f} %", fraction * 100, fraction < 0.0995 ? 1 : 0);
}

std::string us_text(double microseconds) { return microseconds > 0 ? format_us(microseconds) : std::string(kUnknown); }

std::string gap_text(double gap) { return fmt::format("{:+.{}f} %", 100 * gap, std::abs(gap) < 0.1 ? 1 : 0); }

std::string share_text(double part, double whole) { return percent_text(part > 0 && whole > 0 ? part / whole : 0); }

std::string source_text(ChoiceSource source, bool tuned) {
  switch (source) {
    case ChoiceSource::tuned:
      return "tuned now";
    case ChoiceSource::heuristic:
      return "heuristic";
    case ChoiceSource::nearest:
      return "nearest, untuned";
    case ChoiceSource::shipped:
      return "shipped";
    case ChoiceSource::cache:
      return tuned ? "cache" : "cache, untuned";
    case ChoiceSource::memory:
      return tuned ? "memory" : "memory, untuned";
  }
  return {};
}

std::string range_text(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}..{}", first, last);
}

}  // namespace hone::tuner
