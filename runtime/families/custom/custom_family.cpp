// The reduce_custom family: a reduction by the caller's expressions.
#include <hone/custom_reduction.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/custom/custom_exchange.h"
#include "runtime/families/never_destroyed.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/reduce/reduce_layout.h"

namespace hone {
namespace {

constexpr std::string_view kHeader = "custom_op.cuh";

[[noreturn]] void reject(const ReduceExpressions& expressions, const std::string& why) {
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
    reject(expressions, "needs a name of letters, digits and underscores");
  const auto require = [&](const std::string& text, std::string_view field) {
    if (text.find_first_not_of(" \t\n") == std::string::npos)
      reject(expressions, fmt::format("has no {}; give a CUDA C++ expression", field));
    if (const std::string why = not_one_expression(text); !why.empty())
      reject(expressions, fmt::format("has a {} that is not one expression: it {}; functions and variables "
                                                  "go into the declarations",
                                                  field, why));
  };
  require(expressions.map, "map");
  require(expressions.combine, "combine");
  require(expressions.identity, "identity");
  require(expressions.finish, "finish");
  if (!(expressions.relative_tolerance >= 0 && std::isfinite(expressions.relative_tolerance)))
    reject(expressions, fmt::format("has a relative_tolerance of {}; it must be finite and not negative",
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
    theirs(field, source + "\n);");  // the compiler finds there what the text lacks
    ours("  }\n");
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
      "    if constexpr (hone::kIsSmallFloat<In>) return Own::map(static_cast<float>(x), i);\n"
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

/// Leaves each element's accumulator, and what combining it with the identity from either side makes of it.
constexpr std::string_view kIdentityKernel = R"(namespace hone_custom {
template <class Op>
__device__ void combine_with_identity(const hone::ReduceArguments& arguments) {
  using State = typename Op::State;
  const auto* const in = static_cast<const typename Op::In*>(arguments.in[0]);
  for (unsigned long long i = threadIdx.x; i < arguments.n; i += hone::kSerialThreads) {
    const State x = Op::of(in[i], static_cast<typename Op::Index>(i));
    static_cast<State*>(arguments.out[0])[i] = x;
    static_cast<State*>(arguments.out[1])[i] = Op::combine(Op::identity(), x);
    static_cast<State*>(arguments.out[2])[i] = Op::combine(x, Op::identity());
  }
}
}  // namespace hone_custom
)";

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

bool may_accumulate(DType dtype) { return info(dtype).size_bytes >= 4; }

}  // namespace

/// Its one operation has the name of the expressions; Problem::accumulator and Problem::result are always set. Results
/// are verified with plain kernels of the same expressions (serial.cuh), on positive numbers.
class CustomFamily final : public ReduceLayoutFamily, Verifier {
 public:
  explicit CustomFamily(const ReduceExpressions& expressions)
      : ReduceLayoutFamily({.name = "reduce_custom",
                            .space = ReducePolicy::space(),
                            .operations = {&operation_, 1},
                            .kernels = {"reduce.cuh", "reduction.cuh", "serial.cuh"},
                            .sources = {{.name = std::string(kHeader), .text = header_text(expressions)}}}),
        expressions_(expressions),
        operation_(expressions_.name) {}

  const ReduceExpressions& expressions() const { return expressions_; }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    return {input("in", problem.dtype, problem.extents[0]), output("out", *problem.result, 1)};
  }
  const Verifier& verifier() const override { return *this; }

  std::span<const std::string_view> input_kinds(const Problem&) const override { return {&kInputKind, 1}; }
  std::vector<std::byte> input_pattern(const Problem& problem, int, std::string_view) const override {
    const std::int64_t elements = std::min(problem.extents[0], reduce_reference::kInputPeriod);
    return random_pattern(problem.dtype, elements, static_cast<std::uint64_t>(problem.extents[0]), 1, 2);
  }

  /// Besides the size and the next smaller one, those that take fewer blocks, down to one with a single element.
  std::vector<Problem> verified_problems(const Problem& problem) const override {
    const std::int64_t n = problem.extents[0];
    std::vector<std::int64_t> sizes{n};
    for (const std::int64_t size : {n - 1, n / 2 + 1, n / 7 + 1, std::int64_t{1000}, std::int64_t{33}, std::int64_t{1}})
      if (size >= 0 && size < sizes.back()) sizes.push_back(size);
    std::vector<Problem> problems;
    for (const std::int64_t size : sizes) problems.emplace_back(problem).extents[0] = size;
    return problems;
  }

  bool has_reference_kernel() const override { return true; }
  Unit reference_unit(const Problem& problem) const override {
    const std::string text = fmt::format(
        "using Out = {};\n"
        "static_assert(hone::kSerialThreads == {} && hone::kSerialRun == {});\n",
        info(*problem.result).cuda_name, kSerialThreads, kSerialRun);
    Unit unit = serial_unit(problem, text);
    unit.name = fmt::format("{} reference", to_string(problem));
    for (const ReferenceOrder& order : kOrders) unit.entries.push_back(kernel_entry(order.body, order.threads));
    return unit;
  }
  void encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                        LaunchList& launches) const override {
    Launch& launch = launches.add();
    launch.entry = order;
    launch.block.x = static_cast<unsigned>(kOrders[static_cast<std::size_t>(order)].threads);
    launch.arguments.push(ReduceArguments{.in = {buffers[0]},
                                          .n = static_cast<std::uint64_t>(problem.extents[0]),
                                          .workspace = nullptr,
                                          .out = {buffers[1]},
                                          .partials = 0});
  }
  std::string compare(const Problem& problem, const Candidate& candidate, ArrayBytes expected,
                        ArrayBytes outputs) const override {
    const std::int64_t chain =
        longest_chain(problem, candidate) + kSerialRun + 10 + problem.extents[0] / (kSerialThreads * kSerialRun);
    const std::optional<Difference> wrong = difference(problem, chain, expected[0], outputs[0]);
    if (!wrong) return "";
    return fmt::format("the plain kernel gives {}, this one {}; {} is allowed (ReduceExpressions::relative_tolerance)",
                       wrong->first, wrong->other, wrong->allowed);
  }

  int reference_orders() const override { return static_cast<int>(kOrders.size()); }
  /// In a workload of their own: sizes beyond the problem's are asked for, too, which its winner may come to serve.
  std::vector<Problem> order_problems(const Problem& problem) const override {
    std::vector<Problem> problems;
    for (const std::int64_t size : kOrderSizes) problems.emplace_back(problem).extents[0] = size;
    return problems;
  }
  std::string compare_orders(const Problem& problem, ArrayBytes first, ArrayBytes other) const override {
    const std::optional<Difference> differs = difference(problem, 2 * problem.extents[0], first[0], other[0]);
    if (!differs) return "";
    return fmt::format(
        "the reduction '{}' depends on the order in which elements are combined: {} of them give {} in "
        "one order and {} in another, and {} is allowed; combine() has to be associative and commutative, "
        "and identity has to change nothing (or ReduceExpressions::relative_tolerance has to allow more)",
        expressions_.name, problem.extents[0], differs->first, differs->other, differs->allowed);
  }

  std::string law_fault(const Problem& problem) const override {
    const std::scoped_lock lock(tried_mutex_);
    const auto [known, is_new] = identities_.try_emplace({problem.dtype, *problem.accumulator});
    if (!is_new) return known->second;
    const std::string fault =
        identity_fault(host_unit(problem, kIdentityKernel, "hone_custom::combine_with_identity<Op>"), problem.dtype,
                       *problem.accumulator, tolerance(problem, 2));
    if (!fault.empty())
      known->second = fmt::format("the identity of the reduction '{}', {}, changes what it is combined with: {}",
                                  expressions_.name, expressions_.identity, fault);
    return known->second;
  }

 protected:
  std::string fault_of(const Problem& problem) const override {
    if (!problem.accumulator || !may_accumulate(*problem.accumulator) || !problem.result)
      return "it needs an accumulator of f32, f64, i32, u32, i64 or u64, and a result";
    if (!is_canonical(problem)) return ReductionFamily::fault_of(problem);
    std::string why = tried_exchange(problem);
    if (why.empty())
      why = "compilers contract its expressions to fused multiply-adds, and the functions that they may call differ "
            "between devices";
    return fmt::format("it has no reproducible numerics: {}; ask for fast numerics", why);
  }

  /// The header with the expressions, and the type in it that the kernels take.
  OperationSource operation(const Problem& problem) const override {
    return {.includes = fmt::format("#include \"{}\"\n", kHeader),
            .type = fmt::format("hone_custom::Operation<{}, {}, {}>", info(problem.dtype).cuda_name,
                                info(*problem.accumulator).cuda_name, index_type(needs_wide_index(problem, 0)))};
  }
  std::size_t partial_bytes(const Problem& problem) const override { return info(*problem.accumulator).size_bytes; }

 private:
  struct Difference {
    double first, other, allowed;
  };

  /// What `chain` combinations may differ by, relative.
  double tolerance(const Problem& problem, std::int64_t chain) const {
    if (expressions_.relative_tolerance != 0) return expressions_.relative_tolerance;
    return info(*problem.accumulator).is_floating() ? rounding_bound(*problem.accumulator, chain) : 0;
  }

  /// The difference of two results; nullopt where the rounding of `chain` combinations, or the caller, allows for it.
  std::optional<Difference> difference(const Problem& problem, std::int64_t chain, const std::vector<std::byte>& first,
                                         const std::vector<std::byte>& other) const {
    if (first == other) return std::nullopt;
    const bool may_round = info(*problem.accumulator).is_floating();
    return with_element_type(*problem.result, [&]<class T>(T) -> std::optional<Difference> {
      T right, found;
      std::memcpy(&right, first.data(), sizeof(T));
      std::memcpy(&found, other.data(), sizeof(T));
      const auto a = number_of<long double>(right), b = number_of<long double>(found);
      if (std::isnan(a) && std::isnan(b)) return std::nullopt;
      long double allowed = static_cast<long double>(tolerance(problem, chain)) * std::max(std::abs(a), std::abs(b));
      if (may_round) allowed += info(kDTypeOf<T>).is_floating() ? storing_error(kDTypeOf<T>) * 2 * std::abs(a) : 1;
      if (std::abs(a - b) <= allowed) return std::nullopt;
      return Difference{static_cast<double>(a), static_cast<double>(b), static_cast<double>(allowed)};
    });
  }

  /// A unit of serial.cuh, without entries yet.
  Unit serial_unit(const Problem& problem, const std::string& text) const {
    const OperationSource op = operation(problem);
    return unit_of(fmt::format("{}#include \"serial.cuh\"\n\nusing Op = {};\n{}", op.includes, op.type, text), {});
  }

  /// A unit of serial.cuh with one kernel of `body`, for the host device.
  Unit host_unit(const Problem& problem, std::string_view declarations, std::string_view body) const {
    Unit unit = serial_unit(problem, fmt::format("static_assert(hone::kSerialThreads == {});\n{}", kSerialThreads,
                                                 declarations));
    unit.name = fmt::format("{} {}", to_string(problem), body);
    unit.entries = {kernel_entry(body, kSerialThreads)};
    unit.headers.assign(sources().begin(), sources().end());
    return unit;
  }

  /// why_not_reproducible(), tried at the first call for each accumulator.
  std::string tried_exchange(const Problem& problem) const {
    const std::scoped_lock lock(tried_mutex_);
    const auto [known, is_new] = exchanged_.try_emplace(*problem.accumulator);
    if (!is_new) return known->second;
    return known->second = why_not_reproducible(host_unit(problem, "", "hone::combine_both_ways<Op>"),
                                                *problem.accumulator);
  }

  ReduceExpressions expressions_;
  std::string_view operation_;
  mutable std::mutex tried_mutex_;
  mutable std::map<DType, std::string> exchanged_;                      ///< by accumulator
  mutable std::map<std::pair<DType, DType>, std::string> identities_;  ///< faults by the elements' type, too
};

CustomReduction::CustomReduction(const ReduceExpressions& expressions, DType accumulator, std::optional<DType> result)
    : accumulator_(accumulator), result_(result.value_or(accumulator)) {
  // Families are made when they are first asked for, and then kept.
  static std::mutex mutex;
  static auto& families = never_destroyed<std::deque<CustomFamily>>();
  require_complete(expressions);
  const std::scoped_lock lock(mutex);
  const auto known = std::ranges::find(families, expressions, &CustomFamily::expressions);
  family_ = known != families.end() ? &*known : &families.emplace_back(expressions);
  for (DType dtype : {accumulator_, result_})
    if (static_cast<std::size_t>(dtype) >= kDTypes.size())
      reject(expressions, fmt::format("was given dtype {}, and there is none", static_cast<int>(dtype)));
  if (!may_accumulate(accumulator_))
    reject(expressions, fmt::format("cannot accumulate in {}; there are f32, f64, i32, u32, i64 and u64",
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
