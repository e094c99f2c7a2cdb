#include "runtime/families/spec/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {

/// Recursive descent over the levels of kLevels, from the loosest operators to the tightest.
class ExpressionParser {
 public:
  using Code = Expression::Code;
  using Steps = std::vector<Expression::Step>;

  ExpressionParser(Expression& expression, std::span<const ExpressionName> names)
      : expression_(expression), text_(expression.text_), names_(names) {}

  void run() {
    expression_.steps_ = level(0);
    if (skip_blanks(); at_ < text_.size()) fail("nothing else may stand here");
    int depth = 0;
    for (const Expression::Step& step : expression_.steps_) {
      depth += step.code <= Code::variable ? 1 : Expression::is_unary(step.code) ? 0 : -1;
      if (depth > static_cast<int>(Expression::kMostDepth)) fail("it is nested too deeply");
    }
  }

 private:
  struct Operator {
    std::string_view spelling;
    Code code;
  };
  static constexpr std::size_t kLevels = 5, kComparisons = 2;

  /// Longer spellings before those that they begin with.
  static std::span<const Operator> operators(std::size_t level) {
    static constexpr std::array kEither{Operator{"||", Code::either}, Operator{"or", Code::either}};
    static constexpr std::array kBoth{Operator{"&&", Code::both}, Operator{"and", Code::both}};
    static constexpr std::array kComparison{Operator{"<=", Code::less_equal}, Operator{">=", Code::greater_equal},
                                            Operator{"==", Code::equal},      Operator{"!=", Code::not_equal},
                                            Operator{"<", Code::less},        Operator{">", Code::greater}};
    static constexpr std::array kSum{Operator{"+", Code::add}, Operator{"-", Code::subtract}};
    static constexpr std::array kProduct{Operator{"*", Code::multiply}, Operator{"//", Code::divide},
                                         Operator{"/", Code::divide}, Operator{"%", Code::remainder}};
    constexpr std::array<std::span<const Operator>, kLevels> kOperators{kEither, kBoth, kComparison, kSum, kProduct};
    return kOperators[level];
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

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

  Steps level(std::size_t depth) {
    if (depth == kLevels) return unary();
    if (depth == kComparisons && accept("not")) {  // looser than a comparison, as in Python
      Steps steps = nested([&] { return level(kComparisons); });
      steps.push_back({Code::invert});
      return steps;
    }
    Steps steps = level(depth + 1);
    Steps previous = steps;  // the right side of the last comparison of a chain
    bool is_chain = false;
    for (;;) {
      const auto known = operators(depth);
      const auto found =
          std::find_if(known.begin(), known.end(), [&](const Operator& op) { return accept(op.spelling); });
      if (found == known.end()) return steps;
      Steps right = level(depth + 1);
      if (is_chain) append(steps, previous);
      append(steps, right);
      steps.push_back({found->code});
      if (is_chain) steps.push_back({Code::both});
      if (depth != kComparisons) continue;
      is_chain = true;
      previous = std::move(right);
    }
  }

  template <class Parse>
  Steps nested(Parse parse) {
    if (++nesting_ > Expression::kMostDepth) fail("it is nested too deeply");
    Steps steps = parse();
    --nesting_;
    return steps;
  }

  Steps unary() {
    for (const Operator& op : {Operator{"-", Code::negate}, Operator{"!", Code::invert}}) {
      if (!accept(op.spelling)) continue;
      Steps steps = nested([&] { return unary(); });
      steps.push_back({op.code});
      return steps;
    }
    return primary();
  }

  Steps primary() {
    if (accept("(")) {
      Steps steps = nested([&] { return level(0); });
      expect(")");
      return steps;
    }
    for (const Operator& function :
         {Operator{"min", Code::minimum}, Operator{"max", Code::maximum}, Operator{"ceil_div", Code::ceil_div}}) {
      const std::size_t begin = at_;
      if (accept(function.spelling) && accept("(")) {
        Steps steps = level(0);
        expect(",");
        append(steps, level(0));
        expect(")");
        steps.push_back({function.code});
        return steps;
      }
      at_ = begin;
    }
    return word();
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
      return {{Code::constant, number}};
    }
    const auto known = std::find_if(names_.begin(), names_.end(), [&](const auto& name) { return name.name == word; });
    if (known == names_.end()) fail(unknown(word));
    at_ += word.size();
    if (known->variable < 0) return {{Code::constant, known->constant}};
    expression_.used_ |= std::uint64_t{1} << known->variable;
    return {{Code::variable, known->variable}};
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
    if (step.code == Code::constant) {
      stack[used++] = step.value;
    } else if (step.code == Code::variable) {
      stack[used++] = variables[static_cast<std::size_t>(step.value)];
    } else if (is_unary(step.code)) {
      std::int64_t& top = stack[used - 1];
      top = step.code == Code::negate ? apply(Code::subtract, 0, top) : top == 0;
    } else {
      --used;
      stack[used - 1] = apply(step.code, stack[used - 1], stack[used]);
    }
  }
  return used == 0 ? 0 : stack[0];
}

std::int64_t Expression::apply(Code code, std::int64_t a, std::int64_t b) const {
  std::int64_t result = 0;
  const bool divides = code == Code::divide || code == Code::remainder || code == Code::ceil_div;
  if (divides && (b == 0 || (b == -1 && a == INT64_MIN))) fail(b == 0 ? "divides by zero" : "overflows");
  switch (code) {
    case Code::add:
      if (__builtin_add_overflow(a, b, &result)) fail("overflows");
      return result;
    case Code::subtract:
      if (__builtin_sub_overflow(a, b, &result)) fail("overflows");
      return result;
    case Code::multiply:
      if (__builtin_mul_overflow(a, b, &result)) fail("overflows");
      return result;
    case Code::divide:
      return a / b;
    case Code::remainder:
      return a % b;
    case Code::ceil_div:
      return a / b + (a % b != 0 && (a < 0) == (b < 0));
    case Code::minimum:
      return std::min(a, b);
    case Code::maximum:
      return std::max(a, b);
    case Code::less:
      return a < b;
    case Code::less_equal:
      return a <= b;
    case Code::greater:
      return a > b;
    case Code::greater_equal:
      return a >= b;
    case Code::equal:
      return a == b;
    case Code::not_equal:
      return a != b;
    case Code::both:
      return a != 0 && b != 0;
    case Code::either:
      return a != 0 || b != 0;
    default:
      return 0;  // evaluate() computes the others itself
  }
}

std::string Expression::cuda_text(std::span<const std::string> variables) const {
  // In the order of Code.
  constexpr std::array<std::string_view, 20> kForms{"",
                                                    "",
                                                    "(-{0})",
                                                    "(!{0})",
                                                    "({0} + {1})",
                                                    "({0} - {1})",
                                                    "({0} * {1})",
                                                    "({0} / {1})",
                                                    "({0} % {1})",
                                                    "({0} < {1} ? {0} : {1})",
                                                    "({0} > {1} ? {0} : {1})",
                                                    "(({0} + {1} - 1) / {1})",
                                                    "({0} < {1})",
                                                    "({0} <= {1})",
                                                    "({0} > {1})",
                                                    "({0} >= {1})",
                                                    "({0} == {1})",
                                                    "({0} != {1})",
                                                    "({0} && {1})",
                                                    "({0} || {1})"};
  std::vector<std::string> stack;
  for (const Step& step : steps_) {
    if (step.code == Code::constant) {
      stack.push_back(fmt::format("{}LL", step.value));
    } else if (step.code == Code::variable) {
      stack.push_back(variables[static_cast<std::size_t>(step.value)]);
    } else {
      std::string right = std::move(stack.back());
      if (!is_unary(step.code)) stack.pop_back();
      const std::string left = is_unary(step.code) ? right : stack.back();
      stack.back() = fmt::format(fmt::runtime(kForms[static_cast<std::size_t>(step.code)]), left, right);
    }
  }
  return stack.empty() ? "0" : stack.front();
}

void Expression::fail(std::string_view why) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' {}", field_, text_, why));
}

}  // namespace hone
