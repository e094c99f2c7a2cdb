// Errors of reductions, next to the bounds of docs/numerics.md: of a plain loop, of a fast winner of the device, and of
// the canonical tree, whose bits every reproducible kernel has. Units in the last place of the exact result.
//
// numerics_errors [DEVICE]: the device of the fast winners, by default the host. Winners are the occupancy model's
// first choices, so nothing is tuned and no cache is read.
#include <hone/canonical_reduce.h>
#include <hone/device.h>
#include <hone/own_stream.h>
#include <hone/session.h>
#include <hone/softmax.h>
#include <hone/tuned_reduce.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace hone;
using Wide = long double;

struct Input {
  std::string name;
  std::function<double(std::mt19937_64&)> element;
};

double uniform(std::mt19937_64& random, double from) {
  return std::uniform_real_distribution<double>(from, 1)(random);
}

const std::vector<Input>& inputs() {
  static const std::vector<Input> all{
      {"1.23, over and over", [](auto&) { return 1.23; }},
      {"uniform in [0, 1)", [](auto& random) { return uniform(random, 0); }},
      {"uniform in [-1, 1)", [](auto& random) { return uniform(random, -1); }},
      {"24 binades, both signs",
       [](auto& random) {
         const double significand = 1 + uniform(random, 0);
         return std::ldexp(random() % 2 == 0 ? significand : -significand, static_cast<int>(random() % 24) - 12);
       }}};
  return all;
}

/// The dtype of a reduction's result.
template <class T>
using ResultOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Wide value_of(T x) {
  if constexpr (std::is_class_v<T>) return static_cast<float>(x);
  else return x;
}
template <class T>
T element_of(double x) {
  if constexpr (std::is_class_v<T>) return T(static_cast<float>(x));
  else return static_cast<T>(x);
}

/// The unit in the last place of a result that is `exact`.
template <class Result>
Wide ulp_of(Wide exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::ldexp(Wide{1}, exponent - std::numeric_limits<Result>::digits);
}

/// Neumaier's compensated sum in long double: its own error is far below an ulp of what is measured.
class ExactSum {
 public:
  void add(Wide x) {
    const Wide sum = sum_ + x;
    rest_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  Wide value() const { return sum_ + rest_; }

 private:
  Wide sum_ = 0, rest_ = 0;
};

/// A fast winner's result on `device`.
template <class T, class Result>
Result fast_result(Session& session, const ReduceSpec& spec, const std::vector<T>& values) {
  const std::shared_ptr<Device>& device = session.device();
  const OwnStream stream(*device);
  const DeviceBuffer in(device, values.size() * sizeof(T));
  device->copy_to_device(in.data(), values.data(), values.size() * sizeof(T), stream.get());
  Result result{};
  tuned_reduce_and_wait(session, spec, in.data(), static_cast<std::int64_t>(values.size()), &result, stream.get());
  return result;
}

/// One row: errors in ulp, and the bound of the canonical tree in the same unit.
template <class T>
void print_row(Session& session, ReduceOp op, const Input& input, std::int64_t n) {
  using Result = ResultOf<T>;
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  std::vector<T> values(static_cast<std::size_t>(n));
  ExactSum sum, magnitude;
  Result plain = 0;
  for (T& each : values) {
    each = element_of<T>(input.element(random));
    const bool is_square = op == ReduceOp::sum_of_squares;
    const Wide x = value_of(each), term = is_square ? x * x : x;
    const auto rounded = static_cast<Result>(x);
    sum.add(term);
    magnitude.add(std::fabs(term));
    plain += is_square ? rounded * rounded : rounded;
  }
  const ReduceSpec spec{.op = op, .dtype = kDTypeOf<T>};
  Result canonical{};
  canonical_reduce(spec, {values.data()}, {}, n, &canonical);
  const Result fast = fast_result<T, Result>(session, spec, values);

  const Wide exact = sum.value(), ulp = ulp_of<Result>(exact);
  const auto in_ulp = [&](Wide found) { return static_cast<double>(std::fabs(found - exact) / ulp); };
  const Wide unit = std::ldexp(Wide{1}, -std::numeric_limits<Result>::digits);
  const Wide k = std::ceil(std::log2(static_cast<Wide>(n))) + (op == ReduceOp::sum_of_squares ? 1 : 0);
  const auto bound = static_cast<double>(k * unit / (1 - k * unit) * magnitude.value() / ulp);
  fmt::print("| `{}` {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", name(op), info(kDTypeOf<T>).name,
             input.name, n, in_ulp(plain), in_ulp(fast), in_ulp(canonical), bound);
}

template <class T>
void print_rows(Session& session, ReduceOp op) {
  for (const Input& input : inputs())
    for (const std::int64_t n : {std::int64_t{10'000}, std::int64_t{10'000'000}}) print_row<T>(session, op, input, n);
}

/// logsumexp of n elements, uniform in [center − 8, center + 8). The sum of the plain loop, too, is relative to the
/// largest element.
template <class T>
void print_logsumexp_row(Session& session, double center, std::int64_t n) {
  using Result = ResultOf<T>;
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& each : values) each = element_of<T>(center + 8 * uniform(random, -1));
  Wide most = value_of(values[0]);
  for (const T x : values) most = std::max(most, value_of(x));
  ExactSum sum;
  Result loop = 0;
  for (const T x : values) {
    sum.add(std::exp(value_of(x) - most));
    loop += std::exp(static_cast<Result>(value_of(x)) - static_cast<Result>(most));
  }
  const ReduceSpec spec{.op = ReduceOp::logsumexp, .dtype = kDTypeOf<T>};
  Result canonical{};
  canonical_reduce(spec, {values.data()}, {}, n, &canonical);
  const Result fast = fast_result<T, Result>(session, spec, values), plain = static_cast<Result>(most) + std::log(loop);

  const Wide unit = std::ldexp(Wide{1}, -std::numeric_limits<Result>::digits), logarithm = std::log(sum.value());
  const Wide exact = most + logarithm, ulp = ulp_of<Result>(exact);
  const auto in_ulp = [&](Wide found) { return static_cast<double>(std::fabs(found - exact) / ulp); };
  // Where the origin is not 0, differences of up to 16 from it are rounded.
  const Wide of_difference = std::fabs(most) > (std::is_same_v<T, double> ? 256 : 32) ? 16 : 0;
  const Wide of_sum = std::ceil(std::log2(static_cast<Wide>(n))) + 5 + of_difference;
  const Wide bound = unit * (of_sum + 4 * logarithm + std::fabs(exact)) / ulp;
  fmt::print("| `logsumexp` {} | uniform in [{:g}, {:g}) | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n",
             info(kDTypeOf<T>).name, center - 8, center + 8, n, in_ulp(plain), in_ulp(fast), in_ulp(canonical),
             static_cast<double>(bound));
}

/// All results of a softmax on the session's device.
template <class T>
std::vector<T> softmax_of(Session& session, const std::vector<T>& values, bool is_log, Numerics numerics) {
  const std::shared_ptr<Device>& device = session.device();
  const OwnStream stream(*device);
  const std::size_t bytes = values.size() * sizeof(T);
  const DeviceBuffer in(device, bytes), out(device, bytes);
  device->copy_to_device(in.data(), values.data(), bytes, stream.get());
  const SoftmaxSpec spec{.dtype = kDTypeOf<T>, .numerics = numerics};
  const SoftmaxShape shape = SoftmaxShape::array(static_cast<std::int64_t>(values.size()));
  if (is_log) tuned_log_softmax(session, spec, in.data(), shape, out.data(), stream.get());
  else tuned_softmax(session, spec, in.data(), shape, out.data(), stream.get());
  std::vector<T> results(values.size());
  device->copy_to_host(results.data(), out.data(), bytes, stream.get());
  device->synchronize(stream.get());
  return results;
}

/// The largest error of the results of a softmax of n elements, uniform in [-8, 8).
template <class T>
void print_softmax_row(Session& session, bool is_log, std::int64_t n) {
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  std::vector<T> values(static_cast<std::size_t>(n)), plain;
  for (T& each : values) each = static_cast<T>(8 * uniform(random, -1));
  const T most = *std::max_element(values.begin(), values.end());
  ExactSum sum;
  T loop = 0;
  for (const T x : values) {
    sum.add(std::exp(static_cast<Wide>(x) - most));
    loop += std::exp(x - most);
  }
  for (const T x : values) plain.push_back(is_log ? x - most - std::log(loop) : std::exp(x - most) / loop);

  const Wide unit = std::ldexp(Wide{1}, -std::numeric_limits<T>::digits), logarithm = std::log(sum.value());
  const Wide of_weight = 2.5L * unit, of_sum = of_weight + std::ceil(std::log2(static_cast<Wide>(n))) * unit;
  Wide bound = 0;
  const auto exact = [&](std::size_t i) {
    const Wide d = static_cast<Wide>(values[i]) - most;
    return is_log ? d - logarithm : std::exp(d) / sum.value();
  };
  const auto in_ulp = [&](const std::vector<T>& found) {
    Wide largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Wide ulp = ulp_of<T>(exact(i));
      largest = std::max(largest, std::fabs(found[i] - exact(i)) / ulp);
      const Wide d = std::fabs(static_cast<Wide>(values[i]) - most), y = std::fabs(exact(i));
      const Wide allowed = is_log ? 2 * unit * d + 4 * unit * logarithm + of_sum + of_weight + unit + unit * y
                                  : y * (of_weight + 2 * unit + of_sum);
      bound = std::max(bound, allowed / ulp);
    }
    return static_cast<double>(largest);
  };
  const double of_loop = in_ulp(plain), fast = in_ulp(softmax_of(session, values, is_log, Numerics::fast));
  const double reproducible = in_ulp(softmax_of(session, values, is_log, Numerics::reproducible));
  fmt::print("| `{}` {} | uniform in [-8, 8) | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n",
             is_log ? "log_softmax" : "softmax", info(kDTypeOf<T>).name, n, of_loop, fast, reproducible,
             static_cast<double>(bound));
}

}  // namespace

int main(int argument_count, char** arguments) try {
  const std::shared_ptr<Device> device = Device::open(argument_count > 1 ? arguments[1] : "host");
  Session session(device, {.on_miss = MissPolicy::heuristic, .cache_path = {}});
  fmt::print("Errors in ulp; fast: the occupancy model's first choice on {}\n\n"
             "| result | elements | n | plain loop | fast | reproducible | its bound |\n"
             "| --- | --- | --: | --: | --: | --: | --: |\n",
             device->facts().name);
  print_rows<float>(session, ReduceOp::sum);
  print_rows<double>(session, ReduceOp::sum);
  print_rows<half>(session, ReduceOp::sum);
  print_rows<bfloat16>(session, ReduceOp::sum);
  print_rows<float>(session, ReduceOp::sum_of_squares);
  for (const double center : {0, 400})
    for (const std::int64_t n : {10'000, 1'000'000}) {
      print_logsumexp_row<float>(session, center, n);
      print_logsumexp_row<double>(session, center, n);
      print_logsumexp_row<half>(session, center, n);
    }
  for (const bool is_log : {false, true})
    for (const std::int64_t n : {10'000, 1'000'000}) {
      print_softmax_row<float>(session, is_log, n);
      print_softmax_row<double>(session, is_log, n);
    }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "numerics_errors: {}\n", error.what());
  return 1;
}
