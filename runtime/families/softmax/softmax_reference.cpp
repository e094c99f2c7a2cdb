#include "runtime/families/softmax/softmax_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "runtime/families/expectation.h"

namespace hone::softmax_reference {
namespace {

using reduce_reference::Expectation;

/// The state of one line: its largest scaled element, the sum of weights, and by how much a computed sum may be off.
template <class Wide>
struct LineState {
  Wide heaviest = 0;
  Wide sum = 0;
  Wide error = 0;  ///< relative
  bool is_nan = false;
};

template <class Wide>
class Reference {
 public:
  Reference(const Computation& computation, std::span<const std::byte> pattern) : computation_(computation) {
    const std::vector<long double> decoded = reduce_reference::decode(computation.dtype, pattern);
    values_.assign(decoded.begin(), decoded.end());
    const int digits = info(computation.accumulator).digits;
    roundoff_ = std::ldexp(Wide{1}, -digits);
    flushed_ = std::ldexp(Wide{1}, computation.accumulator == DType::f64 ? -1021 : -125);
    // As the kernels do, a scale of 0 is one that is too small to matter, but not for −∞.
    scale_ = computation.scale == 0 ? std::numeric_limits<double>::denorm_min() : computation.scale;
  }

  LineState<Wide> state_of(const Line& line) const {
    const auto period = static_cast<std::int64_t>(values_.size());
    // With a stride that shares no factor with the period, which is a prime unless it is the whole input, every period
    // of elements holds every value once; else the line is taken element by element.
    const bool repeats = line.elements > period && line.in_stride % period != 0;
    const std::int64_t whole = repeats ? line.elements / period : 0;
    const std::int64_t rest = line.elements - whole * period;
    LineState<Wide> state{.heaviest = -std::numeric_limits<Wide>::infinity()};
    const auto each = [&](std::int64_t count, auto&& use) {
      std::int64_t at = line.in_first % period;
      const std::int64_t step = line.in_stride % period;
      for (std::int64_t i = 0; i < count; ++i) {
        use(turned(values_[static_cast<std::size_t>(at)]));
        at += step;
        if (at >= period) at -= period;
      }
    };
    each(whole > 0 ? period : rest, [&](Wide x) {
      state.is_nan = state.is_nan || std::isnan(x) || x == std::numeric_limits<Wide>::infinity();
      state.heaviest = std::max(state.heaviest, x);
    });
    if (state.heaviest == -std::numeric_limits<Wide>::infinity()) state.is_nan = state.is_nan || line.elements > 0;
    if (state.is_nan) return state;
    Wide weighted = 0;
    const auto add = [&](Wide times) {
      return [&, times](Wide x) {
        const Wide distance = (state.heaviest - x) * std::abs(scale_);
        const Wide weight = times * std::exp(-distance);
        state.sum += weight;
        if (weight > 0) weighted += weight * 2 * weight_error(distance);
      };
    };
    if (whole > 0) each(period, add(static_cast<Wide>(whole)));
    each(rest, add(1));
    state.error = weighted / state.sum + static_cast<Wide>(computation_.chain) * 5 * roundoff_;
    return state;
  }

  Expectation result_of(const Line& line, std::int64_t index, const LineState<Wide>& state) const {
    if (state.is_nan) return Expectation::exactly(std::numeric_limits<long double>::quiet_NaN());
    const auto period = static_cast<std::int64_t>(values_.size());
    const Wide x = turned(values_[static_cast<std::size_t>(
        (line.in_first % period + index % period * (line.in_stride % period)) % period)]);
    const Wide distance = (state.heaviest - x) * std::abs(scale_);
    if (computation_.is_log) {
      if (std::isinf(distance)) return Expectation::exactly(-std::numeric_limits<long double>::infinity());
      const Wide logarithm = std::log(state.sum);
      const Wide value = -distance - logarithm;
      const Wide error =
          roundoff_ * (4 * distance + 2 * logarithm + std::abs(value)) + state.error + 8 * roundoff_ + flushed_;
      return Expectation::near(value, error, computation_.accumulator);
    }
    const Wide value = std::exp(-distance) / state.sum;
    const Wide error = value > 0 ? value * (2 * weight_error(distance) + state.error + 8 * roundoff_) : Wide{0};
    return Expectation::near(value, error + flushed_, computation_.accumulator);
  }

 private:
  /// Turned around where the scale is negative: the largest has the largest weight.
  Wide turned(Wide x) const { return computation_.scale < 0 ? -x : x; }

  Wide weight_error(Wide distance) const { return (3 * distance + 4) * roundoff_; }

  const Computation& computation_;
  std::vector<Wide> values_;
  Wide roundoff_ = 0;
  Wide flushed_ = 0;
  Wide scale_ = 1;
};

}  // namespace

std::string verify(const Computation& computation, std::span<const std::byte> pattern,
                   std::span<const ElementRange> parts, const std::function<Line(std::int64_t)>& line_of,
                   std::span<const std::byte> output) {
  const auto verify_in = [&]<class Wide>(Wide) -> std::string {
    const Reference<Wide> reference(computation, pattern);
    const std::vector<long double> found = reduce_reference::decode(computation.result, output);
    std::unordered_map<std::int64_t, LineState<Wide>> states;  // by the line's first element
    std::size_t at = 0;
    for (const ElementRange& part : parts) {
      for (std::int64_t element = part.first; element < part.first + part.count; ++element, ++at) {
        const Line line = line_of(element);
        const auto [state, is_new] = states.try_emplace(line.in_first);
        if (is_new) state->second = reference.state_of(line);
        const std::int64_t index = (element - line.out_first) / line.out_stride;
        const std::string wrong =
            reference.result_of(line, index, state->second).compare(computation.result, found.at(at));
        if (!wrong.empty()) return fmt::format("element {} of the output: {}", element, wrong);
      }
    }
    return "";
  };
  return computation.accumulator == DType::f64 ? verify_in(0.0L) : verify_in(0.0);
}

}  // namespace hone::softmax_reference
