#include "runtime/families/spec/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/spec/words.h"

namespace hone {

namespace {

using A = std::int64_t;
using Value = std::optional<A>;  ///< nullopt: 64 bits cannot hold it

Value added(A a, A b) {
  A result = 0;
  return __builtin_add_overflow(a, b, &result) ? Value() : result;
}
Value subtracted(A a, A b) {
  A result = 0;
  return __builtin_sub_overflow(a, b, &result) ? Value() : result;
}
Value multiplied(A a, A b) {
  A result = 0;
  return __builtin_mul_overflow(a, b, &result) ? Value() : result;
}

/// Binary operators bind the tighter, the higher their level is.
enum Level { kEither, kBoth, kComparison, kSum, kProduct, kLevels, kUnary, kFunction };

}  // namespace

struct Expression::Operator {
  std::string_view spelling;
  int level;
  std::string_view cuda;  ///< with the operands for {0} and {1}
  Value (*value)(A a, A b);
  bool divides = false;
};

/// Recursive descent over the levels, from the loosest operators to the tightest.
class ExpressionParser {
 public:
  using Step = Expression::Step;
  using Steps = std::vector<Step>;

  ExpressionParser(Expression& expression, std::span<const ExpressionName> names)
      : expression_(expression), text_(expression.text_), names_(names) {}

  void run() {
    expression_.steps_ = level(0);
    if (skip_blanks(); at_ < text_.size()) fail("nothing else may stand here");
    std::vector<bool> has_names;  // of the values on the stack
    for (const Step& step : expression_.steps_) {
      if (step.apply == nullptr) {
        has_names.push_back(step.has_names);
        if (has_names.size() > Expression::kMostDepth) fail("it is nested too deeply");
        continue;
      }
      const bool right = has_names.back();
      if (step.apply->level != kUnary) has_names.pop_back();
      if (step.apply->level != kComparison) require_number(right || has_names.back());
      has_names.back() = false;
    }
    require_number(has_names.back());
  }

 private:
  using Operator = Expression::Operator;

  void require_number(bool has_names) const {
    if (has_names)
      expression_.fail("computes with a parameter that has names among its values, which are no numbers; they can be "
                       "compared, as in layout == wide");
  }

  /// Longer spellings before those that they begin with.
  static constexpr std::array<Operator, 21> kOperators{{
      {"||", kEither, "({0} || {1})", [](A a, A b) -> Value { return a != 0 || b != 0; }},
      {"or", kEither, "({0} || {1})", [](A a, A b) -> Value { return a != 0 || b != 0; }},
      {"&&", kBoth, "({0} && {1})", [](A a, A b) -> Value { return a != 0 && b != 0; }},
      {"and", kBoth, "({0} && {1})", [](A a, A b) -> Value { return a != 0 && b != 0; }},
      {"<=", kComparison, "({0} <= {1})", [](A a, A b) -> Value { return a <= b; }},
      {">=", kComparison, "({0} >= {1})", [](A a, A b) -> Value { return a >= b; }},
      {"==", kComparison, "({0} == {1})", [](A a, A b) -> Value { return a == b; }},
      {"!=", kComparison, "({0} != {1})", [](A a, A b) -> Value { return a != b; }},
      {"<", kComparison, "({0} < {1})", [](A a, A b) -> Value { return a < b; }},
      {">", kComparison, "({0} > {1})", [](A a, A b) -> Value { return a > b; }},
      {"+", kSum, "({0} + {1})", added},
      {"-", kSum, "({0} - {1})", subtracted},
      {"*", kProduct, "({0} * {1})", multiplied},
      {"//", kProduct, "({0} / {1})", [](A a, A b) -> Value { return a / b; }, true},
      {"/", kProduct, "({0} / {1})", [](A a, A b) -> Value { return a / b; }, true},
      {"%", kProduct, "({0} % {1})", [](A a, A b) -> Value { return a % b; }, true},
      {"-", kUnary, "(-{0})", [](A a, A) { return subtracted(0, a); }},
      {"!", kUnary, "(!{0})", [](A a, A) -> Value { return a == 0; }},
      {"min", kFunction, "({0} < {1} ? {0} : {1})", [](A a, A b) -> Value { return std::min(a, b); }},
      {"max", kFunction, "({0} > {1} ? {0} : {1})", [](A a, A b) -> Value { return std::max(a, b); }},
      {"ceil_div", kFunction, "(({0} + {1} - 1) / {1})",
       [](A a, A b) -> Value { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }, true},
  }};

  static const Operator* operator_of(std::string_view spelling) {
    return std::ranges::find(kOperators, spelling, &Operator::spelling);
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  /// Passes over `token` if it comes next; a word only where it ends there.
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}' is missing", token));
  }

  static void append(Steps& steps, const Steps& more) { steps.insert(steps.end(), more.begin(), more.end()); }

  /// The operator of a level that comes next, passed over; nullptr if there is none.
  const Operator* accept_operator(int level) {
    const auto found = std::ranges::find_if(
        kOperators, [&](const Operator& op) { return op.level == level && accept(op.spelling); });
    return found == kOperators.end() ? nullptr : &*found;
  }

  Steps level(int depth) {
    if (depth == kLevels) return unary();
    if (depth == kComparison && accept("not")) {  // looser than a comparison, as in Python
      Steps steps = nested([&] { return level(kComparison); });
      steps.push_back({operator_of("!")});
      return steps;
    }
    Steps steps = level(depth + 1);
    Steps previous = steps;  // the right side of the last comparison of a chain
    bool is_chain = false;
    while (const Operator* const found = accept_operator(depth)) {
      Steps right = level(depth + 1);
      if (is_chain) append(steps, previous);
      append(steps, right);
      steps.push_back({found});
      if (is_chain) steps.push_back({operator_of("&&")});
      is_chain = depth == kComparison;
      previous = std::move(right);
    }
    return steps;
  }

  template <class Parse>
  Steps nested(Parse parse) {
    if (++nesting_ > Expression::kMostDepth) fail("it is nested too deeply");
    Steps steps = parse();
    --nesting_;
    return steps;
  }

  Steps unary() {
    const Operator* const found = accept_operator(kUnary);
    if (found == nullptr) return primary();
    Steps steps = nested([&] { return unary(); });
    steps.push_back({found});
    return steps;
  }

  Steps primary() {
    if (accept("(")) {
      Steps steps = nested([&] { return level(0); });
      expect(")");
      return steps;
    }
    const std::size_t begin = at_;
    const Operator* const function = accept_operator(kFunction);
    if (function == nullptr || !accept("(")) {
      at_ = begin;
      return word();
    }
    Steps steps = level(0);
    expect(",");
    append(steps, level(0));
    expect(")");
    steps.push_back({function});
    return steps;
  }

  Steps word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    at_ = begin;  // for messages
    if (word.empty()) fail("a number, a name or a parenthesis is missing");
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (error != std::errc() || end != word.data() + word.size()) fail(fmt::format("'{}' is no whole number", word));
      at_ += word.size();
      return {{.value = number}};
    }
    const auto known = std::find_if(names_.begin(), names_.end(), [&](const auto& name) { return name.name == word; });
    if (known == names_.end()) fail(unknown(word));
    at_ += word.size();
    if (known->variable < 0) return {{.has_names = known->has_names, .value = known->constant}};
    expression_.used_ |= std::uint64_t{1} << known->variable;
    return {{.is_variable = true, .has_names = known->has_names, .value = known->variable}};
  }

  std::string unknown(std::string_view word) const {
    std::string known;
    for (const ExpressionName& name : names_)
      if (name.variable >= 0) known.append(known.empty() ? "" : ", ").append(name.name);
    return fmt::format("'{}' is no name that this may use; it may use {}", word, known.empty() ? "none" : known);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} '{}', column {}: {}", expression_.field_, text_, at_ + 1, why));
  }

  Expression& expression_;
  std::string_view text_;
  std::span<const ExpressionName> names_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
};

Expression::Expression(std::string_view field, std::string_view text, std::span<const ExpressionName> names)
    : field_(field), text_(text) {
  ExpressionParser(*this, names).run();
}

std::int64_t Expression::evaluate(std::span<const std::int64_t> variables) const {
  std::array<std::int64_t, kMostDepth + 1> stack{};
  std::size_t used = 0;
  for (const Step& step : steps_) {
    if (step.apply == nullptr) {
      stack[used++] = step.is_variable ? variables[static_cast<std::size_t>(step.value)] : step.value;
      continue;
    }
    if (step.apply->level != kUnary) --used;
    std::int64_t& left = stack[used - 1];
    const std::int64_t right = stack[used];
    if (step.apply->divides && right == 0) fail("divides by zero");
    const bool overflows = step.apply->divides && right == -1 && left == INT64_MIN;
    const Value value = overflows ? Value() : step.apply->value(left, right);
    if (!value) fail("overflows");
    left = *value;
  }
  return used == 0 ? 0 : stack[0];
}

std::string Expression::cuda_text(std::span<const std::string> variables) const {
  std::vector<std::string> stack;
  for (const Step& step : steps_) {
    if (step.apply == nullptr) {
      stack.push_back(step.is_variable ? variables[static_cast<std::size_t>(step.value)]
                                       : fmt::format("{}LL", step.value));
      continue;
    }
    const std::string right = stack.back();
    if (step.apply->level != kUnary) stack.pop_back();
    stack.back() = fmt::format(fmt::runtime(step.apply->cuda), stack.back(), right);
  }
  return stack.empty() ? "0" : stack.front();
}

void Expression::fail(std::string_view why) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' {}", field_, text_, why));
}

}  // namespace hone
