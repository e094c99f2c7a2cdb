#include "tuner/problems/problem_selection.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/problems/shapes.h"
#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// An option that some families alone take, and how a problem has what was typed.
struct RareOption {
  std::string_view name;
  std::string Selection::* typed;
  void (*copy)(const Problem& from, Problem& to);
  bool (*is_usual)(const Problem& problem);
};

constexpr std::array kRareOptions{
    RareOption{"--accumulator", &Selection::accumulator,
               [](const Problem& from, Problem& to) { to.accumulator = from.accumulator; },
               [](const Problem& problem) { return !problem.accumulator; }},
    RareOption{"--nan", &Selection::nan, [](const Problem& from, Problem& to) { to.nan = from.nan; },
               [](const Problem& problem) { return problem.nan == NanPolicy::propagate; }},
};

/// True if a family has a problem with what `asked` has of the option.
bool takes(const FamilyRow& row, const RareOption& option, const Problem& asked) {
  Problem problem{.family = &row.family()};
  option.copy(asked, problem);
  for (const auto& dtype : kDTypes)
    for (std::size_t operation = 0; operation < row.family().operations().size(); ++operation) {
      problem.dtype = dtype.dtype;
      problem.operation = static_cast<std::uint8_t>(operation);
      const Problem called = row.as_called ? row.as_called(problem) : problem;
      if (!option.is_usual(called) && refusal_of(called).empty()) return true;
    }
  return false;
}

/// Problems and why others are none.
class Listing {
 public:
  explicit Listing(const Selection& selection, Families families)
      : selection_(selection),
        families_(families),
        row_(parse_family(selection.family, families)),
        family_(row_.family()) {}

  std::vector<Problem> run() {
    const auto typed_or = [](const std::optional<std::string>& typed, std::string_view usual) {
      return typed ? std::string_view(*typed) : usual;
    };
    const std::string_view dtype_words = typed_or(selection_.dtypes, row_.dtypes);
    const std::vector<std::uint8_t> operations = parse_operations(family_, typed_or(selection_.ops, row_.operations));
    const std::vector<DType> dtypes = parse_dtypes(dtype_words);
    const std::vector<Extents> shapes = parse_family_shapes(family_, typed_or(selection_.sizes, row_.shapes));
    const std::vector<std::uint32_t> alignments = parse_alignments(selection_.alignments);
    contexts_ = parse_contexts(selection_.context);
    Problem problem{.family = &family_,
                    .accumulator = parse_optional_dtype(selection_.accumulator),
                    .result = parse_optional_dtype(selection_.result),
                    .numerics = parse_numerics(selection_.numerics),
                    .nan = parse_nan_policy(selection_.nan),
                    .pitches = parse_pitches(selection_.pitch)};
    if (problem.pitches != Pitches{} && family_.extent_names().size() == 1)
      throw CommandError(ExitCode::usage, fmt::format("{} has no rows, so there is no pitch; leave --pitch {} out",
                                                      family_.name(), printable(selection_.pitch)));
    for (const std::uint8_t operation : operations)
      for (const DType dtype : dtypes) {
        first_of_kind_ = problems_.size();
        refusal_of_kind_.clear();
        for (const std::uint32_t alignment : alignments) {
          // An array is aligned to its element at least: those problems do not exist.
          if (alignment < info(dtype).size_bytes) continue;
          problem.operation = operation;
          problem.dtype = dtype;
          problem.alignment = alignment;
          for (const Extents& extents : shapes) add(problem, extents);
        }
        if (problems_.size() == first_of_kind_ && !refusal_of_kind_.empty())
          left_out_.push_back(fmt::format("{} of {}", family_.operations()[operation], info(dtype).name));
      }
    // A problem that is not defined is refused where nothing else is named, and left out among other things.
    const bool is_single = operations.size() == 1 && dtypes.size() == 1;
    if (!problems_.empty() && (!is_single || refusal_.empty())) return std::move(problems_);
    if (!refusal_.empty())
      throw CommandError(ExitCode::usage, fmt::format("no problem is left: {}{}", refusal_, who_takes(refused_)));
    throw CommandError(ExitCode::usage, fmt::format("no problem is left: arrays of {} are aligned to their element at "
                                                    "least, --align {} is less",
                                                    printable(dtype_words), printable(selection_.alignments)));
  }

  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  void add(Problem problem, const Extents& extents) {
    problem.extents = extents;
    const Problem asked = problem;
    if (row_.as_called) problem = row_.as_called(problem);
    if (std::string refusal = refusal_of(problem); !refusal.empty()) {
      refusal_ = refusal_of_kind_ = std::move(refusal);
      refused_ = asked;
      return;
    }
    for (const LaunchContext context : contexts_) {
      problem.launch_context = context;
      // Several alignments may be the same for rows that begin anywhere.
      const auto same = [&](const Problem& other) {
        return same_sweep(other, problem) && other.extents == problem.extents && other.pitches == problem.pitches;
      };
      const auto first = problems_.begin() + static_cast<std::ptrdiff_t>(first_of_kind_);
      if (!row_.as_called || std::none_of(first, problems_.end(), same)) problems_.push_back(problem);
    }
  }

  /// Names the families that take an option which this one refuses.
  std::string who_takes(const Problem& refused) const {
    std::string text;
    for (const RareOption& option : kRareOptions) {
      if (option.is_usual(refused) || takes(row_, option, refused)) continue;
      std::vector<std::string_view> names;
      for (const FamilyRow& row : families_)
        if (takes(row, option, refused)) names.push_back(row.family().name());
      text += fmt::format("; {} {} is for {}", option.name, printable(selection_.*option.typed),
                          names.empty() ? "no family" : fmt::format("{}", fmt::join(names, ", ")));
    }
    return text;
  }

  const Selection& selection_;
  Families families_;
  const FamilyRow& row_;
  const KernelFamily& family_;
  std::vector<LaunchContext> contexts_;
  std::vector<Problem> problems_;
  std::size_t first_of_kind_ = 0;  ///< of the problems that have the operation and dtype at hand
  std::string refusal_;
  Problem refused_{};  ///< as it was asked for, if there is a refusal_
  std::string refusal_of_kind_;
  std::vector<std::string> left_out_;
};

}  // namespace

std::vector<Problem> list_problems(const Selection& selection, Families families) {
  return Listing(selection, families).run();
}

std::vector<std::string> list_left_out(const Selection& selection, Families families) {
  Listing listing(selection, families);
  listing.run();
  return listing.left_out();
}

std::vector<Extents> parse_family_shapes(const KernelFamily& family, std::string_view text) {
  const std::span<const std::string_view> names = family.extent_names();
  std::vector<Extents> shapes;
  for (const TypedShape& typed : parse_shapes(text)) {
    const std::optional<Extents> extents = extents_of(typed, names.size());
    if (!extents) {
      const std::string_view example = names.size() == 1 ? "2^20" : names.size() == 2 ? "2^10x2^10" : "2^4x2^10x2^10";
      throw CommandError(ExitCode::usage,
                         fmt::format("{} has {} ({}), but {} has {}; give --size {}", family.name(),
                                     count_text(static_cast<std::int64_t>(names.size()), "extent"),
                                     fmt::join(names, " x "), fmt::join(typed, "x"), typed.size(), example));
    }
    shapes.push_back(*extents);
  }
  return shapes;
}

/// 0: an array without gaps between its rows, as in the commands that messages suggest.
Pitches parse_pitches(std::string_view text) {
  if (text.empty()) return {0, 0};
  const auto side = [](std::string_view number) { return number == "0" ? 0 : parse_size(number); };
  const std::size_t comma = text.find(',');
  if (comma == text.npos) return {side(text), side(text)};
  return {side(text.substr(0, comma)), side(text.substr(comma + 1))};
}

}  // namespace hone::tuner
