// Expression: an integer expression of a KernelSpec, parsed once and computed without allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// A name that expressions may use, and what it stands for.
struct ExpressionName {
  std::string_view name;
  int variable = -1;  ///< the place among the values that evaluate() is given; −1: a constant
  std::int64_t constant = 0;
  bool has_names = false;  ///< it is a name that a parameter may have as its value, or a parameter with such values
};

class Expression {
 public:
  Expression() = default;  ///< 0

  /// Throws Error(invalid_argument) that shows where the text is no expression; `field` names it in messages. Names of
  /// values can be compared, and are no numbers to compute with.
  Expression(std::string_view field, std::string_view text, std::span<const ExpressionName> names);

  /// The value, given those of the variables. Comparisons and conditions are 1 or 0. Throws Error(invalid_argument) for
  /// a division by zero and a result that 64 bits cannot hold.
  std::int64_t evaluate(std::span<const std::int64_t> variables) const;

  /// The expression in CUDA C++, with `variables` for the variables. Divisors of ceil_div() count as positive.
  std::string cuda_text(std::span<const std::string> variables) const;

  const std::string& text() const { return text_; }

  /// Bit i is set if the expression uses variable i.
  std::uint64_t used_variables() const { return used_; }

 private:
  friend class ExpressionParser;

  struct Operator;
  struct Step {  ///< of a postfix program: an operator, or else a variable or a constant
    const Operator* apply = nullptr;
    bool is_variable = false, has_names = false;
    std::int64_t value = 0;
  };
  static constexpr std::size_t kMostDepth = 32;

  [[noreturn]] void fail(std::string_view why) const;

  std::string field_, text_;
  std::vector<Step> steps_;
  std::uint64_t used_ = 0;
};

}  // namespace hone
