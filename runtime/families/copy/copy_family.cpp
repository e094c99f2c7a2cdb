#include <hone/copy_spec.h>

#include <algorithm>
#include <array>
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
    static const auto& space =
        never_destroyed(space_of<P>(PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512, 1024})},
                                    PolicyField{&P::unroll, ordinal("unroll", {4, 2, 8, 1})},
                                    PolicyField{&P::hint, categorical("hint", {"none", "streaming"})}));
    return space;
  }
};

constexpr std::array<std::string_view, 1> kOperations{"copy"};

/// A thread's packs take four registers each.
constexpr int kMostPacksPerBlock = 4096;

bool is_one_row(const Problem& problem) { return problem.extents[0] == 1; }

std::int64_t pitch_of(const Problem& problem, std::size_t array) {
  return pitch_of(problem, array, problem.extents[1]);
}

/// A policy on a problem.
struct CopyLayout : CopyPolicy {
  const Problem& problem;
  std::int64_t rows = problem.extents[0], columns = problem.extents[1];
  std::int64_t pack_bytes = std::max<std::int64_t>(problem.alignment, element_bytes(problem));
  std::int64_t packs;  ///< of a row, at the addresses that touch the most of them; one row begins with a whole pack
  std::int64_t tiles;

  CopyLayout(const Problem& of, const Policy& policy) : CopyPolicy(policy.as<CopyPolicy>()), problem(of) {
    const std::int64_t width = pack_bytes / element_bytes(problem);
    const bool is_aligned = is_one_row(problem) || pitch_of(problem, 1) % width == 0;
    packs = (columns + (is_aligned ? width - 1 : 2 * width - 2)) / width;
    tiles = at_least_one(divide_up(rows * packs, std::int64_t{block_threads} * unroll));
  }

  /// By the largest extents that a winner serves.
  bool needs_wide_windows() const {
    constexpr double kMost = std::numeric_limits<std::int32_t>::max();
    const double width = static_cast<double>(pack_bytes / element_bytes(problem));
    const auto most_rows = static_cast<double>(last_of(problem, 0)), longest = static_cast<double>(last_of(problem, 1));
    return longest > kMost || most_rows * (longest / width + 2) > kMost;
  }

  Reason is_valid(const DeviceFacts& facts) const {
    return first_reason({check_blocks(facts, block_threads), reason_if(hint != Hint::none && pack_bytes != 16,
                                                                       "only vectors of 16 bytes have a hint")});
  }

  Unit unit() const {
    const std::string source = fmt::format(
        "#include \"copy.cuh\"\n\n"
        "using T = {};\n"
        "using Index = {};\n"
        "using Kernel = hone::Copy<T, {}, {}, {}, {}, Index>;\n",
        info(problem.dtype).cuda_name, index_type(needs_wide_windows()), pack_bytes, block_threads, unroll,
        hint == Hint::streaming);
    return unit_of(source, {kernel_entry(is_one_row(problem) ? "Kernel::copy_row" : "Kernel::copy_rows",
                                         block_threads)});
  }

  WorkShape shape() const {
    return {.tiles = tiles,
            .bytes_in_flight_per_block = block_threads * unroll * pack_bytes,
            .independent_blocks = true};
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void*, LaunchList& launches) const {
    add_launch(launches, std::min(max_blocks, tiles), block_threads,
               CopyArguments{.in = buffers[0],
                             .out = buffers[1],
                             .rows = static_cast<std::uint64_t>(rows),
                             .columns = static_cast<std::uint64_t>(columns),
                             .windows = static_cast<std::uint64_t>(packs),
                             .in_pitch = pitch_of(problem, 0),
                             .out_pitch = pitch_of(problem, 1)});
  }
};

using View = PolicyView<CopyLayout>;

constexpr std::array<PruneRule<View>, 1> kPruneRules{{
    {"the tile of a block is more than its registers hold", kNotMeasured,
     [](const View& v) { return v.block_threads * v.unroll > kMostPacksPerBlock; }},
}};

/// Extents {rows, columns, 1}.
class CopyFamily final : public LayoutFamily<moved::MovedFamily, CopyLayout, kPruneRules> {
 public:
  CopyFamily()
      : LayoutFamily({.name = "copy",
                      .space = CopyPolicy::space(),
                      .extent_names = {"rows", "columns"},
                      .operations = kOperations,
                      .kernels = {"copy.cuh"}}) {}

  /// Rows at every address that a winner serves: at this problem's pitches, and, of several, an element closer.
  std::vector<Problem> verified_problems(const Problem& problem) const override {
    if (is_one_row(problem)) return {problem, smaller(problem, 1)};
    const Pitches pitches{pitch_of(problem, 0), pitch_of(problem, 1)};
    return {problem, smaller(problem, 1, 1, pitches), smaller(problem, 1, 1, {pitches[0] - 1, pitches[1] - 1})};
  }

  Rows rows(const Problem& problem, int buffer) const override {
    return {.rows = problem.extents[0],
            .length = problem.extents[1],
            .pitch = pitch_of(problem, static_cast<std::size_t>(buffer))};
  }

  /// Returns by how many bytes, a power of two, the rows of both arrays lie alike.
  std::uint32_t alignment_of_rows(const Problem& problem) const override {
    const std::int64_t apart = is_one_row(problem) ? 0 : pitch_of(problem, 1) - pitch_of(problem, 0);
    return common_alignment(problem.alignment, element_bytes(problem), {apart});
  }

 private:
  std::int64_t source_of(const Problem& problem, std::int64_t element) const override {
    const std::int64_t row = element / pitch_of(problem, 1), column = element % pitch_of(problem, 1);
    return column < problem.extents[1] ? row * pitch_of(problem, 0) + column : -1;
  }

};

}  // namespace

const KernelFamily& copy_family() { return the_family<CopyFamily>(); }

Problem copy_problem(const CopySpec& spec, std::uint32_t alignment) {
  const std::int64_t parts = spec.element_bytes == 16 ? 2 : 1;
  Problem problem{.family = &copy_family(),
                  .dtype = moved::dtype_of_size(spec.element_bytes / static_cast<std::size_t>(parts)),
                  .extents = {spec.rows, parts * spec.columns, 1},
                  .pitches = {parts * spec.input_pitch(), parts * spec.output_pitch()}};
  std::int64_t all = 0;
  if (spec.rows > 0 && spec.input_pitch() == spec.columns && spec.output_pitch() == spec.columns &&
      !__builtin_mul_overflow(spec.rows, problem.extents[1], &all))
    problem.extents = {1, all, 1};
  problem.pitches =
      is_one_row(problem) ? Pitches{0, 0} : named_pitches(problem.pitches, problem.extents[1], problem.extents[1]);
  return with_alignment_of_rows(problem, alignment);
}

}  // namespace hone
