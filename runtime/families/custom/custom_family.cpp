#include "runtime/families/custom/custom_family.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/counts.h"

namespace hone {
namespace {

constexpr std::string_view kHeader = "custom_op.cuh";

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

bool may_accumulate(DType dtype) { return info(dtype).size_bytes >= 4; }

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

CustomFamily::CustomFamily(const ReduceExpressions& expressions)
    : ReductionFamily({.name = "reduce_custom",
                       .space = ReducePolicy::space(),
                       .operations = {&operation_, 1},
                       .kernels = {"reduce.cuh", "reduction.cuh", "serial.cuh"},
                       .sources = {{.name = std::string(kHeader), .text = header_text(expressions)}}}),
      expressions_(expressions),
      operation_(expressions_.name) {}

std::string CustomFamily::refuse(const Problem& problem) const {
  if (problem.operation != 0) return fmt::format("{} has no operation {}", name(), problem.operation);
  if (!problem.accumulator || !may_accumulate(*problem.accumulator) || !problem.result)
    return fmt::format("{} {} needs an accumulator of f32, f64, i32, u32, i64 or u64, and a result", name(),
                       operation_);
  if (problem.numerics == Numerics::reproducible) {
    const std::string exchanged = exchanged_elements(problem);
    const std::string why = exchanged.empty()
                                ? "compilers contract its expressions to fused multiply-adds, and the functions that "
                                  "they may call differ between devices"
                                : fmt::format("exchanged operands must give the same bits, and {}", exchanged);
    return fmt::format("{} {} has no reproducible numerics: {}; ask for fast numerics", name(), operation_, why);
  }
  return ReductionFamily::refuse(problem);
}

std::vector<BufferSpec> CustomFamily::buffers(const Problem& problem) const {
  return {input("in", problem.dtype, problem.extents[0]), output("out", *problem.result, 1)};
}

std::size_t CustomFamily::partial_bytes(const Problem& problem) const { return info(*problem.accumulator).size_bytes; }

OperationSource CustomFamily::operation(const Problem& problem) const {
  return {.includes = fmt::format("#include \"{}\"\n", kHeader),
          .type = fmt::format("hone_custom::Operation<{}, {}, {}>", info(problem.dtype).cuda_name,
                              info(*problem.accumulator).cuda_name, index_type(needs_wide_index(problem, 0)))};
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
