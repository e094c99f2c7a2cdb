#include <hone/copy_spec.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "kernel_templates/copy_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/moved_elements.h"
#include "runtime/families/work_division.h"

namespace hone {
namespace {

/// The policies of copies: every parameter is a choice of copy.cuh.
struct CopyPolicy {
  enum class Hint : std::int32_t { none, streaming };

  std::int32_t block_threads = 256;
  std::int32_t unroll = 4;  ///< packs that a thread loads at once
  Hint hint = Hint::none;   ///< of the loads and stores to the caches

  static const ParameterSpace& space() {
    using P = CopyPolicy;
    // The model cannot tell hints apart, nor most unrolls: the first is the untuned choice.
    static const ParameterSpace space =
        space_of<P>(PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512, 1024})},
                    PolicyField{&P::unroll, ordinal("unroll", {4, 2, 8, 1})},
                    PolicyField{&P::hint, categorical("hint", {"none", "streaming"})});
    return space;
  }
};

constexpr std::array<std::string_view, 1> kOperations{"copy"};

/// A thread's packs take four registers each.
constexpr int kMostPacksPerBlock = 4096;

std::int64_t vector_bytes(const Problem& problem) {
  return std::max<std::int64_t>(problem.alignment, element_bytes(problem));
}

bool is_one_row(const Problem& problem) { return problem.extents[0] == 1; }

std::int64_t pitch_of(const Problem& problem, std::size_t array) {
  return pitch_of(problem, array, problem.extents[1]);
}

/// Packs of a row, at the addresses that touch the most of them. One row begins with a whole pack.
std::int64_t packs_per_row(const Problem& problem) {
  const std::int64_t width = vector_bytes(problem) / element_bytes(problem);
  const std::int64_t columns = problem.extents[1];
  const bool is_aligned = is_one_row(problem) || pitch_of(problem, 1) % width == 0;
  return (columns + (is_aligned ? width - 1 : 2 * width - 2)) / width;
}

std::int64_t tiles_of(const Problem& problem, const CopyPolicy& policy) {
  const std::int64_t tile = std::int64_t{policy.block_threads} * policy.unroll;
  return at_least_one(divide_up(problem.extents[0] * packs_per_row(problem), tile));
}

/// By the largest extents that a winner serves.
bool needs_wide_windows(const Problem& problem) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const std::array<SizeRange, 3> sizes = size_ranges(problem.extents);
  const double width = static_cast<double>(vector_bytes(problem) / element_bytes(problem));
  const double columns = static_cast<double>(sizes[1].last);
  return columns > kMost || static_cast<double>(sizes[0].last) * (columns / width + 2) > kMost;
}

using View = PolicyView<CopyPolicy>;

constexpr std::array<PruneRule<View>, 1> kPruneRules{{
    {"the tile of a block is more than its registers hold", kNotMeasured,
     [](const View& v) { return v.block_threads * v.unroll > kMostPacksPerBlock; }},
}};

/// Extents {rows, columns, 1}.
class CopyFamily final : public moved::MovedFamily {
 public:
  CopyFamily()
      : MovedFamily({.name = "copy",
                     .space = CopyPolicy::space(),
                     .extent_names = {"rows", "columns"},
                     .operations = kOperations,
                     .kernels = {"copy.cuh"}}) {}

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override {
    const auto copy = policy.as<CopyPolicy>();
    const bool has_hint = copy.hint == CopyPolicy::Hint::none || vector_bytes(problem_class.typical()) == 16;
    return first_reason(
        {check_blocks(facts, copy.block_threads), reason_if(!has_hint, "only vectors of 16 bytes have a hint")});
  }
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override {
    return pruned_by(kPruneRules, View(problem_class, policy, facts));
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const Problem& problem = problem_class.typical();
    const auto copy = policy.as<CopyPolicy>();
    const std::string source = fmt::format(
        "#include \"copy.cuh\"\n\n"
        "using T = {type};\n"
        "using Index = {index};\n"
        "using Kernel = hone::Copy<T, {vector}, {threads}, {unroll}, {streaming}, Index>;\n",
        fmt::arg("type", info(problem.dtype).cuda_name), fmt::arg("index", index_type(needs_wide_windows(problem))),
        fmt::arg("vector", vector_bytes(problem)), fmt::arg("threads", copy.block_threads),
        fmt::arg("unroll", copy.unroll), fmt::arg("streaming", copy.hint == CopyPolicy::Hint::streaming));
    return unit_of(source, {kernel_entry(is_one_row(problem) ? "Kernel::copy_row" : "Kernel::copy_rows",
                                         copy.block_threads)});
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const auto copy = policy.as<CopyPolicy>();
    return {.block_threads = copy.block_threads,
            .tiles = tiles_of(problem, copy),
            .bytes_in_flight_per_block = copy.block_threads * copy.unroll * vector_bytes(problem),
            .dependent_launch = true,
            .independent_blocks = true};
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
              LaunchList& launches) const override {
    const auto copy = candidate.policy.as<CopyPolicy>();
    add_launch(launches, std::min(candidate.geometry.max_blocks, tiles_of(problem, copy)), copy.block_threads,
               CopyArguments{.in = buffers[0],
                             .out = buffers[1],
                             .rows = static_cast<std::uint64_t>(problem.extents[0]),
                             .columns = static_cast<std::uint64_t>(problem.extents[1]),
                             .windows = static_cast<std::uint64_t>(packs_per_row(problem)),
                             .in_pitch = pitch_of(problem, 0),
                             .out_pitch = pitch_of(problem, 1)});
  }

  /// Rows at every address that a winner serves: at this problem's pitches, and, of several, an element closer.
  std::vector<Problem> verified_problems(const Problem& problem) const override {
    Problem shorter = problem;
    if (!is_one_row(problem)) shorter.pitches = {pitch_of(problem, 0), pitch_of(problem, 1)};
    --shorter.extents[1];
    if (is_one_row(problem)) return {problem, shorter};
    Problem closer = shorter;
    for (std::int64_t& pitch : closer.pitches) --pitch;
    return {problem, shorter, closer};
  }

  Rows rows(const Problem& problem, int buffer) const override {
    return {.rows = problem.extents[0],
            .length = problem.extents[1],
            .pitch = pitch_of(problem, static_cast<std::size_t>(buffer))};
  }

 private:
  std::int64_t source_of(const Problem& problem, std::int64_t element) const override {
    const std::int64_t row = element / pitch_of(problem, 1), column = element % pitch_of(problem, 1);
    return column < problem.extents[1] ? row * pitch_of(problem, 0) + column : -1;
  }

  std::string refuse_layout(const Problem& problem) const override {
    if (problem.extents[2] != 1)
      return fmt::format("copy was asked for a third extent of {}; it has two", problem.extents[2]);
    const std::int64_t apart = (pitch_of(problem, 1) - pitch_of(problem, 0)) * element_bytes(problem);
    if (is_one_row(problem) || apart % problem.alignment == 0) return "";
    return fmt::format(
        "copy was asked for alignment {}, but pitches of {} and {} elements of {} bytes differ otherwise; "
        "copy_problem() finds the alignment",
        problem.alignment, pitch_of(problem, 0), pitch_of(problem, 1), element_bytes(problem));
  }
};

}  // namespace

const KernelFamily& copy_family() {
  static const CopyFamily family;
  return family;
}

Problem copy_problem(const CopySpec& spec, std::uint32_t alignment) {
  const std::int64_t parts = spec.element_bytes == 16 ? 2 : 1;
  const std::size_t bytes = spec.element_bytes / static_cast<std::size_t>(parts);
  Problem problem{.family = &copy_family(),
                  .dtype = moved::dtype_of_size(bytes),
                  .extents = {spec.rows, parts * spec.columns, 1},
                  .pitches = {parts * spec.input_pitch(), parts * spec.output_pitch()}};
  std::int64_t all = 0;
  if (spec.rows > 0 && spec.input_pitch() == spec.columns && spec.output_pitch() == spec.columns &&
      !__builtin_mul_overflow(spec.rows, problem.extents[1], &all))
    problem.extents = {1, all, 1};
  problem.pitches =
      is_one_row(problem) ? Pitches{0, 0} : named_pitches(problem.pitches, problem.extents[1], problem.extents[1]);
  const auto apart = static_cast<std::uint64_t>(
                         problem.pitches[0] == problem.pitches[1] ? 0 : pitch_of(problem, 1) - pitch_of(problem, 0)) *
                     bytes;
  problem.alignment = 1u << std::countr_zero(apart | std::uint64_t{alignment} | kMaxAlignment);
  return problem;
}

}  // namespace hone
