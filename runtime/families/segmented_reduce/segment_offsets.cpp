#include "runtime/families/segmented_reduce/segment_offsets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/never_destroyed.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone::segment_offsets {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"power_law", "uniform_lengths", "one_segment", "mostly_empty"};

constexpr double kTailExponent = 1.5;
constexpr std::int64_t kSegmentsPerFull = 64;

/// A prime, so that equal lengths are nowhere at equal places of blocks.
constexpr std::size_t kLengthPeriod = 65521;

/// Sums of the first i lengths of one period, in units of λ.
const std::vector<double>& power_law_sums() {
  static const auto& sums = never_destroyed([] {
    std::vector<double> lengths(kLengthPeriod);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const double beyond = (static_cast<double>(i) + 0.5) / static_cast<double>(kLengthPeriod);
      lengths[i] = std::pow(beyond, -1 / kTailExponent) - 1;
    }
    std::shuffle(lengths.begin(), lengths.end(), std::mt19937_64(1));
    std::vector<double> result(kLengthPeriod + 1, 0);
    std::partial_sum(lengths.begin(), lengths.end(), result.begin() + 1);
    return result;
  }());
  return sums;
}

std::int64_t full_segment(std::int64_t segments) { return segments * 2 / 3; }

template <class Offset>
void fill_power_law(std::span<Offset> offsets, std::int64_t elements) {
  const std::vector<double>& sums = power_law_sums();
  const auto sum_before = [&](std::size_t i) {
    return static_cast<double>(i / kLengthPeriod) * sums.back() + sums[i % kLengthPeriod];
  };
  const double scale = static_cast<double>(elements) / sum_before(offsets.size() - 1);
  double before = 0;  // whole periods
  std::size_t place = 0;
  for (Offset& offset : offsets) {
    offset = static_cast<Offset>(std::min(static_cast<std::int64_t>((before + sums[place]) * scale), elements));
    if (++place == kLengthPeriod) {
      place = 0;
      before += sums.back();
    }
  }
}

/// `parts` equal parts; offset i lies behind as many of them as `behind` says.
template <class Offset, class Behind>
void fill_equal(std::span<Offset> offsets, std::int64_t elements, std::int64_t parts, Behind behind) {
  const long double length = static_cast<long double>(elements) / static_cast<long double>(parts);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    offsets[i] =
        static_cast<Offset>(std::floor(length * static_cast<long double>(behind(static_cast<std::int64_t>(i)))));
}

template <class Offset>
std::vector<std::byte> make_as(std::string_view kind, std::int64_t segments, std::int64_t elements) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(segments + 1) * sizeof(Offset));
  const std::span<Offset> offsets(reinterpret_cast<Offset*>(bytes.data()), static_cast<std::size_t>(segments + 1));
  if (segments == 0) return bytes;
  if (kind == "uniform_lengths") {
    fill_equal(offsets, elements, segments, [](std::int64_t i) { return i; });
  } else if (kind == "mostly_empty") {
    const std::int64_t full = (segments + kSegmentsPerFull - 1) / kSegmentsPerFull;
    fill_equal(offsets, elements, full, [](std::int64_t i) { return (i + kSegmentsPerFull - 1) / kSegmentsPerFull; });
  } else if (kind == "one_segment") {
    fill_equal(offsets, elements, 1, [&](std::int64_t i) { return i > full_segment(segments) ? 1 : 0; });
  } else {
    fill_power_law(offsets, elements);
  }
  offsets.back() = static_cast<Offset>(elements);  // whatever rounding did
  return bytes;
}

}  // namespace

std::span<const std::string_view> kinds() { return kKinds; }

std::span<const std::string_view> input_kinds(const ReduceSpec& spec) {
  std::vector<std::string_view> all(kKinds.begin(), kKinds.end());
  const auto awkward = reduce_reference::input_kinds(spec).subspan(1);
  all.insert(all.end(), awkward.begin(), awkward.end());
  return kept_kinds(std::move(all));
}

std::vector<std::byte> elements(const ReduceSpec& spec, std::int64_t count, std::string_view kind) {
  const bool is_of_lengths = std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
  return reduce_reference::input_pattern(spec, 0, count,
                                         is_of_lengths ? reduce_reference::input_kinds(spec).front() : kind);
}

double longest_of_mean(std::int64_t segments) {
  const double mean = power_law_sums().back() / static_cast<double>(kLengthPeriod);
  const auto different = static_cast<double>(std::min(segments, static_cast<std::int64_t>(kLengthPeriod)));
  return std::max(1.0, (std::pow(2 * different, 1 / kTailExponent) - 1) / mean);
}

std::vector<std::byte> make(std::string_view kind, DType dtype, std::int64_t segments, std::int64_t elements) {
  return dtype == DType::i64 ? make_as<std::int64_t>(kind, segments, elements)
                             : make_as<std::int32_t>(kind, segments, elements);
}

std::int64_t Offsets::operator[](std::int64_t i) const {
  const auto at = [&]<class Offset>(Offset offset) -> std::int64_t {
    std::memcpy(&offset, bytes_.data() + static_cast<std::size_t>(i) * sizeof(Offset), sizeof(Offset));
    return offset;
  };
  return wide_ ? at(std::int64_t{}) : at(std::int32_t{});
}

std::string fault(const Offsets& offsets, std::int64_t elements) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t offset = offsets[i];
    if (offset < 0 || offset > elements)
      return fmt::format("offsets[{}] = {} is outside of the {} elements", i, offset, elements);
    if (offset < before) return fmt::format("offsets[{}] = {} is less than offsets[{}] = {}", i, offset, i - 1, before);
    before = offset;
  }
  return "";
}

std::vector<ElementRange> verified(std::int64_t segments, std::int64_t elements) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 17;
  constexpr std::int64_t kOverhead = 64;  // in elements, of starting on a segment
  if (segments == 0) return {};
  const std::int64_t mean = std::min(elements / segments + kOverhead, reduce_reference::kInputPeriod);
  const std::int64_t most = std::max<std::int64_t>(kMostElements / mean, 3);
  constexpr std::int64_t kRuns = 32;
  const std::int64_t run = std::max<std::int64_t>(most / kRuns, 1);
  return spread_runs(segments, run, std::min(kRuns, most / run), {full_segment(segments)});
}

}  // namespace hone::segment_offsets
