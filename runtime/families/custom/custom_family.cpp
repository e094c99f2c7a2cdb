#include "runtime/families/custom/custom_family.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <random>

#include <fmt/format.h>

#include <hone/error.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

constexpr std::string_view kHeader = "custom_op.cuh";
constexpr unsigned kSerialThreads = 1024;  // serial.cuh
constexpr std::int64_t kSerialRun = 256;

constexpr std::string_view kInputKind = "positive";

/// The orders of combination in serial.cuh: the kernels of the reference unit.
struct ReferenceOrder {
  std::string_view body;
  unsigned threads;
};
constexpr std::array<ReferenceOrder, 4> kOrders{{{"hone::serial_reduce<Op, Out, false>", kSerialThreads},
                                                 {"hone::serial_reduce<Op, Out, true>", kSerialThreads},
                                                 {"hone::fold<Op, Out, false>", 1},
                                                 {"hone::fold<Op, Out, true>", 1}}};

/// Sizes that orders are compared at: around a thread, a warp and the plain kernel's block.
constexpr std::array<std::int64_t, 8> kOrderSizes{1025, 257, 33, 7, 4, 3, 2, 1};

[[noreturn]] void refuse_expressions(const ReduceExpressions& expressions, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("the reduction '{}' {}", expressions.name, why));
}

bool is_identifier_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Why a text cannot be one expression ("" if it may be): what ends it early would put the rest of it elsewhere in the
/// kernel, or drop it. Literals and comments are passed over; a lambda's statements are its own.
std::string not_one_expression(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return "holds a NUL character";
  std::string open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      const std::string_view end = rest.starts_with("//") ? "\n" : "*/";
      const std::size_t at = text.find(end, i + 2);
      if (at == std::string_view::npos && rest.starts_with("/*")) return "has a comment without an end";
      i = at == std::string_view::npos ? text.size() : at + end.size() - 1;
    } else if (c == '"' || (c == '\'' && (i == 0 || !is_identifier_character(text[i - 1])))) {
      std::size_t at = i + 1;
      while (at < text.size() && text[at] != c) at += text[at] == '\\' ? 2 : 1;
      if (at >= text.size()) return fmt::format("has a {} without an end", c);
      i = at;
    } else if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return fmt::format("has a '{}' that nothing before it opens", c);
      open.pop_back();
    } else if (c == ';' && open.find('}') == std::string::npos) {
      return "has a ';'";
    } else if (c == '#' && (i == 0 || text[i - 1] == '\n')) {
      return "has a preprocessor line";
    }
  }
  return open.empty() ? "" : fmt::format("lacks a '{}'", open.back());
}

void require_complete(const ReduceExpressions& expressions) {
  const std::string& name = expressions.name;
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_identifier_character))
    refuse_expressions(expressions, "needs a name of letters, digits and underscores");
  const auto require = [&](const std::string& text, std::string_view field) {
    if (text.find_first_not_of(" \t\n") == std::string::npos)
      refuse_expressions(expressions, fmt::format("has no {}; give a CUDA C++ expression", field));
    if (const std::string why = not_one_expression(text); !why.empty())
      refuse_expressions(expressions, fmt::format("has a {} that is not one expression: it {}; functions and variables "
                                                  "go into the declarations",
                                                  field, why));
  };
  require(expressions.map, "map");
  require(expressions.combine, "combine");
  require(expressions.identity, "identity");
  require(expressions.finish, "finish");
  if (!(expressions.relative_tolerance >= 0 && std::isfinite(expressions.relative_tolerance)))
    refuse_expressions(expressions, fmt::format("has a relative_tolerance of {}; it must be finite and not negative",
                                                expressions.relative_tolerance));
}

/// Texts of the caller's stand on lines of their own, which #line counts as theirs.
std::string header_text(const ReduceExpressions& expressions) {
  int line = 1;
  std::string text;
  const auto ours = [&](std::string_view lines) {
    text += lines;
    line += static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
  };
  const auto theirs = [&](std::string_view field, const std::string& source) {
    ours(fmt::format("#line 1 \"{}.{}\"\n{}\n", expressions.name, field, source));
    ours(fmt::format("#line {} \"{}\"\n", line + 1, kHeader));
  };
  const auto function = [&](std::string_view signature, std::string_view field, const std::string& source) {
    ours(fmt::format("  static __device__ {} {{\n    return (\n", signature));
    theirs(field, source);
    ours("    );\n  }\n");
  };

  ours("#pragma once\n\n#include \"reduction.cuh\"\n\nnamespace hone_custom {\n\n");
  if (!expressions.declarations.empty()) theirs("declarations", expressions.declarations);
  ours(
      "template <class Acc, class Index>\n"
      "struct Expressions {\n");
  function("Acc identity()", "identity", expressions.identity);
  function("Acc combine(Acc a, Acc b)", "combine", expressions.combine);
  ours("  template <class Element>\n");
  function("Acc map([[maybe_unused]] Element x, [[maybe_unused]] Index i)", "map", expressions.map);
  function("auto finish([[maybe_unused]] Acc acc, [[maybe_unused]] Index n)", "finish", expressions.finish);
  ours(
      "};\n\n"
      "template <class In, class Acc_, class Index_>\n"
      "struct Operation : hone::Reduction<Operation<In, Acc_, Index_>, In, Acc_, Index_> {\n"
      "  using Own = Expressions<Acc_, Index_>;\n"
      "  static __device__ Acc_ identity() { return Own::identity(); }\n"
      "  static __device__ Acc_ combine(Acc_ a, Acc_ b) { return Own::combine(a, b); }\n"
      "  static __device__ Acc_ of(In x, Index_ i) {\n"
      "    if constexpr (hone::kIsFloat16<In>) return Own::map(static_cast<float>(x), i);\n"
      "    else if constexpr (hone::kSame<In, hone::Bool>) return Own::map(x.byte != 0, i);\n"
      "    else return Own::map(x, i);\n"
      "  }\n"
      "  template <class Out>\n"
      "  static __device__ void write(Acc_ acc, Index_ n, Out* out) { *out = hone::convert<Out>(Own::finish(acc, n)); "
      "}\n"
      "};\n\n"
      "}  // namespace hone_custom\n");
  return text;
}

bool may_accumulate(DType dtype) {
  const DTypeInfo& accumulator = info(dtype);
  return accumulator.size_bytes >= 4;
}

/// γ(k) = k·u ÷ (1 − k·u) (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
double rounding_bound(DType accumulator, std::int64_t chain) {
  const double unit = accumulator == DType::f32 ? 0x1p-24 : 0x1p-53;
  const double sum = static_cast<double>(chain) * unit;
  return sum < 0.5 ? sum / (1 - sum) : 1;
}

/// Half a unit in the last place of a result that is stored in `dtype`, relative.
double storing_error(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f32 ? 0x1p-24 : 0x1p-53;
}

}  // namespace

const CustomFamily& CustomFamily::of(const ReduceExpressions& expressions) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<const CustomFamily>> families;
  require_complete(expressions);
  const std::scoped_lock lock(mutex);
  for (const auto& family : families)
    if (family->expressions_ == expressions) return *family;
  families.emplace_back(new CustomFamily(expressions));
  return *families.back();
}

CustomFamily::CustomFamily(const ReduceExpressions& expressions) : expressions_(expressions) {
  operation_ = expressions_.name;
  sources_ = kernel_sources({"reduce.cuh", "reduction.cuh", "serial.cuh"});
  sources_.push_back({.name = std::string(kHeader), .text = header_text(expressions_)});
}

std::string CustomFamily::refuse(const Problem& problem) const {
  if (problem.operation != 0) return fmt::format("{} has no operation {}", name(), problem.operation);
  if (!problem.accumulator || !may_accumulate(*problem.accumulator) || !problem.result)
    return fmt::format("{} {} needs an accumulator of f32, f64, i32, u32, i64 or u64, and a result", name(),
                       operation_);
  return ReductionFamily::refuse(problem);
}

std::vector<BufferSpec> CustomFamily::buffers(const Problem& problem) const {
  return {{.name = "in", .is_input = true, .dtype = problem.dtype, .elements = problem.extents[0]},
          {.name = "out", .is_input = false, .dtype = *problem.result, .elements = 1}};
}

std::size_t CustomFamily::partial_bytes(const Problem& problem) const { return info(*problem.accumulator).size_bytes; }

OperationSource CustomFamily::operation(const Problem& problem) const {
  return {.headers = {std::string(kHeader)},
          .type = fmt::format("hone_custom::Operation<{}, {}, {}>", info(problem.dtype).cuda_name,
                              info(*problem.accumulator).cuda_name, index_type(problem))};
}

std::span<const std::string_view> CustomFamily::input_kinds(const Problem&) const { return {&kInputKind, 1}; }

std::vector<std::byte> CustomFamily::input_pattern(const Problem& problem, int, std::string_view) const {
  const std::int64_t elements = std::min(problem.extents[0], reduce_reference::kInputPeriod);
  return with_element_type(problem.dtype, [&]<class T>(T) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    std::vector<Stored> values(static_cast<std::size_t>(elements));
    std::mt19937_64 random(static_cast<std::uint64_t>(problem.extents[0]));
    for (Stored& value : values) {
      const std::uint64_t bits = random();
      if constexpr (info(kDTypeOf<T>).is_floating())
        value = static_cast<Stored>(1 + static_cast<float>(bits >> 41) * 0x1p-23f);
      else value = static_cast<Stored>(std::is_same_v<T, bool> ? bits & 1 : bits);
    }
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
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
  Unit unit{.name = fmt::format("{} reference", to_string(problem)),
            .source = fmt::format("#include \"{}\"\n#include \"serial.cuh\"\n\n"
                                  "using Op = {};\nusing Out = {};\n"
                                  "static_assert(hone::kSerialThreads == {} && hone::kSerialRun == {});\n",
                                  kHeader, op.type, info(*problem.result).cuda_name, kSerialThreads, kSerialRun),
            .headers = {},
            .entries = {}};
  for (const ReferenceOrder& order : kOrders)
    unit.entries.push_back(kernel_entry(order.body, std::to_string(order.threads)));
  return unit;
}

void CustomFamily::encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                                    LaunchList& launches) const {
  Launch& launch = launches.add();
  launch.entry = order;
  launch.block.x = kOrders[static_cast<std::size_t>(order)].threads;
  launch.arguments.push(ReduceArguments{.in = {buffers[0]},
                                        .n = static_cast<std::uint64_t>(problem.extents[0]),
                                        .workspace = nullptr,
                                        .out = {buffers[1]},
                                        .partials = 0});
}

std::string CustomFamily::compare(const Problem& problem, const Candidate& candidate,
                                  std::span<const std::vector<std::byte>> expected,
                                  std::span<const std::vector<std::byte>> outputs) const {
  const std::int64_t chain = longest_chain(problem, candidate) + kSerialRun + 10 +
                             problem.extents[0] / (kSerialThreads * kSerialRun);
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

std::string CustomFamily::compare_orders(const Problem& problem, std::span<const std::vector<std::byte>> first,
                                         std::span<const std::vector<std::byte>> other) const {
  const std::optional<Difference> differs = difference(problem, 2 * problem.extents[0], first[0], other[0]);
  if (!differs) return "";
  return fmt::format("the reduction '{}' depends on the order in which elements are combined: {} of them give {} in "
                     "one order and {} in another, and {} is allowed; combine() has to be associative and commutative, "
                     "and identity has to change nothing (or ReduceExpressions::relative_tolerance has to allow more)",
                     operation_, problem.extents[0], differs->first, differs->other, differs->allowed);
}

/// What two results differ by; nothing where the rounding of `chain` combinations, or the caller, allows for it.
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

CustomReduction::CustomReduction(const ReduceExpressions& expressions, DType accumulator, std::optional<DType> result)
    : family_(&CustomFamily::of(expressions)), accumulator_(accumulator), result_(result.value_or(accumulator)) {
  for (DType dtype : {accumulator_, result_})
    if (static_cast<std::size_t>(dtype) >= kDTypes.size())
      refuse_expressions(expressions, fmt::format("was given dtype {}, and there is none", static_cast<int>(dtype)));
  if (!may_accumulate(accumulator_))
    refuse_expressions(expressions, fmt::format("cannot accumulate in {}; there are f32, f64, i32, u32, i64 and u64",
                                                info(accumulator_).name));
}

Problem CustomReduction::problem(DType dtype, std::int64_t n, std::uint32_t alignment) const {
  return {.family = family_,
          .dtype = dtype,
          .accumulator = accumulator_,
          .result = result_,
          .alignment = peeled_alignment(dtype, alignment),
          .extents = {n, 1, 1}};
}

}  // namespace hone
