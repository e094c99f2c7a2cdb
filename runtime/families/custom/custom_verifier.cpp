// How reductions by the caller's expressions are verified.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/custom/custom_family.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone {
namespace {

constexpr std::int32_t kSerialThreads = 1024;  // serial.cuh
constexpr std::int64_t kSerialRun = 256;

constexpr std::string_view kInputKind = "positive";

/// The orders of combination in serial.cuh: the kernels of the reference unit.
struct ReferenceOrder {
  std::string_view body;
  std::int32_t threads;
};
constexpr std::array<ReferenceOrder, 4> kOrders{{{"hone::serial_reduce<Op, Out, false>", kSerialThreads},
                                                 {"hone::serial_reduce<Op, Out, true>", kSerialThreads},
                                                 {"hone::fold<Op, Out, false>", 1},
                                                 {"hone::fold<Op, Out, true>", 1}}};

/// Sizes that orders are compared at: around a thread, a warp and the plain kernel's block.
constexpr std::array<std::int64_t, 8> kOrderSizes{1025, 257, 33, 7, 4, 3, 2, 1};

/// γ(k) = k·u ÷ (1 − k·u) (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
double rounding_bound(DType accumulator, std::int64_t chain) {
  const double unit = accumulator == DType::f32 ? 0x1p-24 : 0x1p-53;
  const double sum = static_cast<double>(chain) * unit;
  return sum < 0.5 ? sum / (1 - sum) : 1;
}

/// Half a unit in the last place of a result that is stored in `dtype`, relative.
double storing_error(DType dtype) { return std::ldexp(1.0, -info(dtype).digits); }

}  // namespace

std::span<const std::string_view> CustomFamily::input_kinds(const Problem&) const { return {&kInputKind, 1}; }

std::vector<std::byte> CustomFamily::input_pattern(const Problem& problem, int, std::string_view) const {
  const std::int64_t elements = std::min(problem.extents[0], reduce_reference::kInputPeriod);
  return random_pattern(problem.dtype, elements, static_cast<std::uint64_t>(problem.extents[0]), 1, 2);
}

std::vector<Problem> CustomFamily::verified_problems(const Problem& problem) const {
  const std::int64_t n = problem.extents[0];
  std::vector<std::int64_t> sizes{n};
  for (const std::int64_t size : {n - 1, n / 2 + 1, n / 7 + 1, std::int64_t{1000}, std::int64_t{33}, std::int64_t{1}})
    if (size >= 0 && size < sizes.back()) sizes.push_back(size);
  std::vector<Problem> problems;
  for (const std::int64_t size : sizes) problems.emplace_back(problem).extents[0] = size;
  return problems;
}

Unit CustomFamily::reference_unit(const Problem& problem) const {
  const OperationSource op = operation(problem);
  Unit unit = unit_of(fmt::format("{}#include \"serial.cuh\"\n\n"
                                  "using Op = {};\nusing Out = {};\n"
                                  "static_assert(hone::kSerialThreads == {} && hone::kSerialRun == {});\n",
                                  op.includes, op.type, info(*problem.result).cuda_name, kSerialThreads, kSerialRun),
                      {});
  unit.name = fmt::format("{} reference", to_string(problem));
  for (const ReferenceOrder& order : kOrders)
    unit.entries.push_back(kernel_entry(order.body, order.threads));
  return unit;
}

void CustomFamily::encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                                    LaunchList& launches) const {
  Launch& launch = launches.add();
  launch.entry = order;
  launch.block.x = static_cast<unsigned>(kOrders[static_cast<std::size_t>(order)].threads);
  launch.arguments.push(ReduceArguments{.in = {buffers[0]},
                                        .n = static_cast<std::uint64_t>(problem.extents[0]),
                                        .workspace = nullptr,
                                        .out = {buffers[1]},
                                        .partials = 0});
}

std::string CustomFamily::compare(const Problem& problem, const Candidate& candidate, ArrayBytes expected,
                                  ArrayBytes outputs) const {
  const std::int64_t chain =
      longest_chain(problem, candidate) + kSerialRun + 10 + problem.extents[0] / (kSerialThreads * kSerialRun);
  const std::optional<Difference> wrong = difference(problem, chain, expected[0], outputs[0]);
  if (!wrong) return "";
  return fmt::format("the plain kernel gives {}, this one {}; {} is allowed (ReduceExpressions::relative_tolerance)",
                     wrong->first, wrong->other, wrong->allowed);
}

int CustomFamily::reference_orders() const { return static_cast<int>(kOrders.size()); }

/// In a workload of their own: sizes beyond the problem's are asked for, too, which its winner may come to serve.
std::vector<Problem> CustomFamily::order_problems(const Problem& problem) const {
  std::vector<Problem> problems;
  for (const std::int64_t size : kOrderSizes) problems.emplace_back(problem).extents[0] = size;
  return problems;
}

std::string CustomFamily::compare_orders(const Problem& problem, ArrayBytes first, ArrayBytes other) const {
  const std::optional<Difference> differs = difference(problem, 2 * problem.extents[0], first[0], other[0]);
  if (!differs) return "";
  return fmt::format(
      "the reduction '{}' depends on the order in which elements are combined: {} of them give {} in "
      "one order and {} in another, and {} is allowed; combine() has to be associative and commutative, "
      "and identity has to change nothing (or ReduceExpressions::relative_tolerance has to allow more)",
      expressions_.name, problem.extents[0], differs->first, differs->other, differs->allowed);
}

std::optional<CustomFamily::Difference> CustomFamily::difference(const Problem& problem, std::int64_t chain,
                                                                 const std::vector<std::byte>& first,
                                                                 const std::vector<std::byte>& other) const {
  if (first == other) return std::nullopt;
  const bool may_round = info(*problem.accumulator).is_floating();
  double tolerance = expressions_.relative_tolerance;
  if (tolerance == 0 && may_round) tolerance = rounding_bound(*problem.accumulator, chain);
  return with_element_type(*problem.result, [&]<class T>(T) -> std::optional<Difference> {
    T right, found;
    std::memcpy(&right, first.data(), sizeof(T));
    std::memcpy(&found, other.data(), sizeof(T));
    const auto number = [](T x) -> long double {
      if constexpr (std::is_class_v<T>) return static_cast<float>(x);
      else return x;
    };
    const long double a = number(right), b = number(found);
    if (std::isnan(a) && std::isnan(b)) return std::nullopt;
    long double allowed = static_cast<long double>(tolerance) * std::max(std::abs(a), std::abs(b));
    if (may_round) allowed += info(kDTypeOf<T>).is_floating() ? storing_error(kDTypeOf<T>) * 2 * std::abs(a) : 1;
    if (std::abs(a - b) <= allowed) return std::nullopt;
    return Difference{static_cast<double>(a), static_cast<double>(b), static_cast<double>(allowed)};
  });
}

}  // namespace hone
