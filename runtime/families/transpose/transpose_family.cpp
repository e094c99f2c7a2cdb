#include "runtime/families/transpose/transpose_policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include <hone/transpose_spec.h>

#include "kernel_templates/transpose_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/moved_elements.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 4> kOperations{"transpose", "transpose_in_place", "transpose_pairs",
                                                      "transpose_pairs_in_place"};

using Aspect = TransposePolicy::Aspect;
using Order = TransposePolicy::Order;

constexpr int kSmallestTileKib = 4;
constexpr int kFewestThreads = 64;

/// A thread's loads each take a register at least, and its tile no more than a quarter of them.
constexpr int kMostLoadsPerThread = 32;
constexpr std::int64_t kLeastBytesPerThread = 16, kMostBytesPerThread = 256;

constexpr int kMostRegisters = 255;  ///< of a thread

/// The time that a thread takes for an element, with its way through shared memory: u16 of 4096x16384 in tiles of 16 KiB
/// take 104.8 µs by 64 threads, of which 256 are resident on an SM, and 97.5 by 128, of which 640 are (H100, CUDA 13.0,
/// 2026-11-25).
constexpr double kElementNs = 32;

/// The input rows that a tile has in common with the next are a fourth of those of smaller tiles, and more.
constexpr int kSmallestShiftedTileKib = 16;

/// Packs of 16 bytes a thread: fewer leave threads idle in the last iteration, more occupy half of its registers.
constexpr int kFewestShiftedLoads = 5, kMostShiftedLoads = 14;

/// Rows of fewer bytes leave lanes of wide packs far apart.
constexpr std::int64_t kShortRowBytes = 128;

/// The differences of the operations: matrices that are their own output, and elements that are pairs of 64 bits.
bool moves_in_place(const Problem& problem) { return problem.operation % 2 == 1; }
bool is_of_pairs(const Problem& problem) { return problem.operation >= 2; }

/// Returns the size of the elements that are moved as one.
int moved_bytes(const Problem& problem) {
  return static_cast<int>(element_bytes(problem)) * (is_of_pairs(problem) ? 2 : 1);
}

std::int64_t rows_of(const Problem& problem) { return problem.extents[1]; }
std::int64_t columns_of(const Problem& problem) { return problem.extents[2]; }

Pitches pitches_of(const Problem& problem) {
  return {pitch_of(problem, 0, columns_of(problem)), pitch_of(problem, 1, rows_of(problem))};
}

/// The smallest power of two that is no smaller, up to one that no tile reaches.
int power_of_two(std::int64_t extent) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(extent, 1 << 20))));
}

/// The C++ type of what is moved as one.
std::string element_type(const Problem& problem) {
  if (!is_of_pairs(problem)) return std::string(info(problem.dtype).cuda_name);
  return fmt::format("hone::Wide<{}>", std::max(problem.alignment, std::uint32_t{8}));
}

/// The tile that a policy has for a class: it depends on which sides of the matrices are short.
struct TransposeTile : TransposePolicy {
  const Problem& problem;
  bool in_place;
  bool shifted;  ///< by transpose_shifted.cuh
  int element_bytes;
  int vector_bytes, widest_bytes;  ///< of a load, and of the widest that the sides and the alignment allow
  int tile_rows, tile_columns;     ///< of the input
  bool is_narrow, is_low;          ///< the matrix has fewer columns, or rows, than a tile of this aspect
  bool is_small;                   ///< it is smaller than the tile

  TransposeTile(const Problem& of, const Policy& policy)
      : TransposePolicy(policy.as<TransposePolicy>()),
        problem(of),
        in_place(moves_in_place(of)),
        shifted(staging == Staging::shifted),
        element_bytes(moved_bytes(of)) {
    const auto alignment = static_cast<int>(problem.alignment);
    const std::int64_t most_rows = last_of(problem, 1), most_columns = last_of(problem, 2);

    widest_bytes = std::max(alignment, element_bytes);
    while (widest_bytes > element_bytes && widest_bytes > std::min(most_rows, most_columns) * element_bytes)
      widest_bytes /= 2;
    const bool is_of_narrow_vectors = vector == Vector::narrow;
    vector_bytes = shifted                ? static_cast<int>(kMaxAlignment)
                   : is_of_narrow_vectors ? std::max(element_bytes, widest_bytes / 4)
                                          : widest_bytes;

    // As square as a power of two allows; where the matrix is narrower than that, as wide as it.
    const int log_aspect = aspect == Aspect::tall ? -1 : aspect == Aspect::wide ? 1 : 0;
    const std::int64_t elements = (std::int64_t{tile_kib} << 10) / element_bytes / (in_place ? 2 : 1);
    const int log_elements = std::countr_zero(static_cast<std::uint64_t>(elements));
    tile_columns = 1 << std::max(0, (log_elements + 1) / 2 + log_aspect);
    tile_rows = static_cast<int>(elements) / tile_columns;
    const int limit_columns = std::max(1, power_of_two(most_columns) >> (aspect == Aspect::tall ? 1 : 0));
    const int limit_rows = std::max(1, power_of_two(most_rows) >> (aspect == Aspect::wide ? 1 : 0));
    is_narrow = tile_columns > limit_columns;
    is_low = tile_rows > limit_rows;
    if (!in_place && is_narrow && !is_low) {
      tile_columns = limit_columns;
      tile_rows = static_cast<int>(elements) / tile_columns;
    } else if (!in_place && is_low && !is_narrow) {
      tile_rows = limit_rows;
      tile_columns = static_cast<int>(elements) / tile_rows;
    }
    is_small = tile_columns > power_of_two(most_columns) || tile_rows > power_of_two(most_rows);
  }

  /// Input rows before a tile's first one that its block loads as well, so that its pieces of output rows start at
  /// sectors.
  int step_rows() const { return shifted ? 32 / element_bytes : 0; }
  std::int64_t tile_bytes() const { return std::int64_t{element_bytes} * tile_rows * tile_columns; }

  /// Vectors, before it uses any.
  int loads_per_thread() const {
    if (!shifted) return static_cast<int>(tile_bytes()) * (in_place ? 2 : 1) / block_threads / vector_bytes;
    // As transpose_shifted.cuh divides them: kPhases · kTurns · kSpans + kLastPacks.
    const int warps = block_threads / 32, pack = vector_bytes / element_bytes, held_rows = tile_rows + step_rows();
    const std::int64_t phases = std::max(1, pack / warps), phase_warps = std::max(1, warps / pack);
    const std::int64_t turns = divide_up(held_rows / pack, 4 * phase_warps);
    const std::int64_t spans = tile_columns * element_bytes / kShortRowBytes;
    return static_cast<int>(phases * turns * spans + divide_up(held_rows, block_threads));
  }

  /// Returns the shared memory of a block: with the padding, and of two tiles where they change places.
  std::int64_t smem_bytes() const {
    if (shifted) {
      const int pack = vector_bytes / element_bytes, row_bytes = tile_columns * element_bytes + vector_bytes;
      const std::int64_t groups = (tile_rows + step_rows()) / pack;
      return divide_up(groups * (pack * row_bytes + std::max(4, element_bytes)), 16) * 16;
    }
    const int row_packs = tile_columns / (vector_bytes / element_bytes);
    const int lanes_at_once = vector_bytes < 4 ? 32 : 128 / vector_bytes;
    const int pad_bytes = std::max(4, vector_bytes * std::max(1, lanes_at_once / std::max(1, row_packs)));
    const std::int64_t bytes = tile_bytes() + std::int64_t{row_packs} * pad_bytes;
    return divide_up(bytes, 16) * 16 * (in_place ? 2 : 1);
  }

  /// The smallest tile that every thread of the smallest block has a part in.
  int smallest_kib() const {
    const int width = vector_bytes / element_bytes;
    const int smallest = std::max(kSmallestTileKib, kFewestThreads * width * vector_bytes * (in_place ? 2 : 1) >> 10);
    const bool is_oblong = std::countr_zero(static_cast<unsigned>(smallest << 10) / element_bytes / 2) % 2 == 1;
    return in_place && is_oblong ? 2 * smallest : smallest;
  }

  /// Tiles, or pairs of tiles that change places.
  std::int64_t tiles() const {
    const std::int64_t down = divide_up(rows_of(problem) + std::max(0, step_rows() - 1), tile_rows);
    const std::int64_t across = divide_up(columns_of(problem), tile_columns);
    return at_least_one(problem.extents[0] * (in_place ? down * (down + 1) / 2 : down * across));
  }

  /// By the largest extents that a winner serves.
  bool needs_wide_tiles() const {
    constexpr double kMost = std::numeric_limits<std::int32_t>::max();
    const auto most = [&](std::size_t extent) { return static_cast<double>(last_of(problem, extent)); };
    return most(0) * (most(1) / tile_rows + 2) * (most(2) / tile_columns + 1) > kMost || most(1) > kMost ||
           most(2) > kMost;
  }

  Reason is_valid(const DeviceFacts& facts) const {
    const bool is_square = tile_rows == tile_columns;
    const int width = vector_bytes / element_bytes, shortest = std::min(tile_rows, tile_columns);
    const std::int64_t packs =
        shifted ? tile_bytes() / vector_bytes : std::int64_t{tile_rows / width} * (tile_columns / width);
    const int loads = loads_per_thread();
    return first_reason(
        {reason_if(shifted && problem.alignment >= kMaxAlignment, "all rows are aligned, nothing is shifted"),
         reason_if(shifted && (in_place || element_bytes > 8),
                   "only elements of up to 8 bytes are shifted, and not in place"),
         reason_if(in_place && (!is_square || order != Order::rows),
                   "only square tiles in the order of rows change places"),
         check_blocks(facts, block_threads),
         reason_if(shifted && shortest * element_bytes < kShortRowBytes,
                   "shifted tiles have sides of 128 bytes or more"),
         reason_if(packs < block_threads, "a tile has fewer packs than threads"),
         reason_if(loads * std::max(1, vector_bytes / 4) > kMostRegisters, "more loads a thread than registers"),
         check_static_smem(smem_bytes())});
  }

  Unit unit() const {
    constexpr std::array<std::string_view, 3> kOrders{"rows", "columns", "groups"};
    const std::string source = fmt::format(
        "#include \"{}\"\n\n"
        "using T = {};\n"
        "using Index = {};\n"
        "using Kernel = hone::{}{}, {}, {}, hone::TileOrder::{}, Index>;\n"
        "static_assert(sizeof(T) == {} && sizeof(Kernel::Tile) * {} == {},\n"
        "              \"host and device disagree on the policy\");\n",
        shifted ? "transpose_shifted.cuh" : "transpose.cuh", element_type(problem), index_type(needs_wide_tiles()),
        shifted ? "ShiftedTranspose<T, " : fmt::format("Transpose<T, {}, ", vector_bytes), tile_rows, tile_columns,
        block_threads, kOrders[static_cast<std::size_t>(order)], element_bytes, in_place ? 2 : 1, smem_bytes());
    return unit_of(source, {kernel_entry(in_place ? "Kernel::swap" : "Kernel::transpose", block_threads)});
  }

  WorkShape shape() const {
    return {.tiles = tiles(),
            .bytes_in_flight_per_block = tile_bytes() * (in_place ? 2 : 1),
            .independent_blocks = true,
            .thread_gbps = 2.0 * element_bytes / kElementNs};
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void*, LaunchList& launches) const {
    const auto [in_pitch, out_pitch] = pitches_of(problem);
    add_launch(launches, std::min(max_blocks, tiles()), block_threads,
               TransposeArguments{.in = buffers[0],
                                  .out = buffers[1],
                                  .batch = static_cast<std::uint64_t>(problem.extents[0]),
                                  .rows = static_cast<std::uint64_t>(rows_of(problem)),
                                  .columns = static_cast<std::uint64_t>(columns_of(problem)),
                                  .in_pitch = in_pitch,
                                  .out_pitch = out_pitch});
  }
};

struct TileView : PolicyView<TransposeTile> {
  using PolicyView::PolicyView;

  SizeRange rows = size_ranges(problem.extents)[1], columns = size_ranges(problem.extents)[2];
  std::int64_t loads = loads_per_thread(), bytes = loads * vector_bytes;  ///< of a thread

  std::int64_t shortest_bytes() const { return std::min(rows.first, columns.first) * element_bytes; }
  std::int64_t longest_bytes() const { return std::min(rows.last, columns.last) * element_bytes; }
  bool is_of_narrow_vectors() const { return !shifted && vector == Vector::narrow; }
};

constexpr std::array<PruneRule<TileView>, 11> kPruneRules{{
    {"rows are too short to be worth shifting", kNotMeasured,
     [](const TileView& v) { return v.shifted && v.shortest_bytes() < kShortRowBytes; }},
    {"wide tiles, those of less than 16 KiB and groups are not worth shifting",
     "u16 of 300007x100 and 2000x50257: 100.2 and 99.3 % (H100)",
     [](const TileView& v) {
       return v.shifted &&
              (v.tile_kib < kSmallestShiftedTileKib || v.aspect == Aspect::wide || v.order == Order::groups);
     }},
    {"5 to 14 shifted loads a thread are worth trying",
     "u16 of 300007x100 and 2000x50257: 100.2 and 99.9 % (H100)",
     [](const TileView& v) { return v.shifted && (v.loads < kFewestShiftedLoads || v.loads > kMostShiftedLoads); }},
    {"elements leave no choice of vectors", "the same vectors as the widest",
     [](const TileView& v) { return v.is_of_narrow_vectors() && v.vector_bytes == v.widest_bytes; }},
    {"rows are long enough for the widest vectors", "100.5 % (H100, prune_rules)",
     [](const TileView& v) {
       return v.is_of_narrow_vectors() && v.longest_bytes() >= kShortRowBytes && !v.in_place && v.element_bytes > 1;
     }},
    {"a short side decides the aspect of tiles", "another aspect of the same tile",
     [](const TileView& v) {
       return !v.in_place && v.is_narrow != v.is_low && v.aspect == (v.is_narrow ? Aspect::wide : Aspect::tall);
     }},
    {"the matrix is smaller than a tile", "the smallest square tile does the same work",
     [](const TileView& v) { return v.is_small && (v.tile_kib > v.smallest_kib() || v.aspect != Aspect::square); }},
    {"tiles that change places are square in any case", "the same tiles",
     [](const TileView& v) { return v.in_place && v.aspect != Aspect::square; }},
    {"the loads of a thread leave too few registers", "100.8 % (H100, prune_rules)",
     [](const TileView& v) { return v.loads > kMostLoadsPerThread || v.bytes > kMostBytesPerThread; }},
    {"the bytes of a thread are too few to keep memory busy", kNotMeasured,
     [](const TileView& v) { return v.bytes < kLeastBytesPerThread; }},
    {"there is one line of tiles, and one order of it", "the same order",
     [](const TileView& v) {
       return v.order != Order::rows && (v.columns.last <= v.tile_columns || v.rows.last <= v.tile_rows);
     }},
}};

/// Extents {batch, rows, columns}.
class TransposeFamily final : public LayoutFamily<moved::MovedFamily, TransposeTile, kPruneRules> {
 public:
  TransposeFamily()
      : LayoutFamily({.name = "transpose",
                      .space = TransposePolicy::space(),
                      .extent_names = {"batch", "rows", "columns"},
                      .operations = kOperations,
                      .kernels = {"transpose.cuh", "transpose_shifted.cuh"}}) {}

  /// The problem itself, and one row or column less at the same pitches; of squares, both.
  std::vector<Problem> verified_problems(const Problem& problem) const override {
    const Problem lower = smaller(problem, 1, 1, pitches_of(problem));
    if (is_in_place(problem)) return {problem, smaller(lower, 2)};
    return {problem, lower, smaller(problem, 2, 1, pitches_of(problem))};
  }

  Rows rows(const Problem& problem, int buffer) const override {
    return {.batch = problem.extents[0],
            .rows = buffer == 0 ? rows_of(problem) : columns_of(problem),
            .length = buffer == 0 ? columns_of(problem) : rows_of(problem),
            .pitch = pitches_of(problem)[static_cast<std::size_t>(buffer)],
            .parts = is_of_pairs(problem) ? 2 : 1};
  }

  std::uint32_t alignment_of_rows(const Problem& problem) const override {
    const auto [in_pitch, out_pitch] = pitches_of(problem);
    return common_alignment(problem.alignment, moved_bytes(problem), {in_pitch, out_pitch});
  }

 private:
  std::int64_t source_of(const Problem& problem, std::int64_t element) const override {
    const auto [in_pitch, out_pitch] = pitches_of(problem);
    const std::int64_t parts = is_of_pairs(problem) ? 2 : 1, rows = rows_of(problem), columns = columns_of(problem);
    const std::int64_t row = element / parts % out_pitch, line = element / parts / out_pitch;
    if (row >= rows) return -1;
    return ((line / columns * rows + row) * in_pitch + line % columns) * parts + element % parts;
  }

  std::string fault_of(const Problem& problem) const override {
    if (is_of_pairs(problem) && problem.dtype != DType::u64)
      return fmt::format("elements of 16 bytes are moved as pairs of u64, not of {}", info(problem.dtype).name);
    const auto [in_pitch, out_pitch] = pitches_of(problem);
    if (is_in_place(problem) && (rows_of(problem) != columns_of(problem) || in_pitch != out_pitch))
      return "only square matrices at equal pitches change places";
    return MovedFamily::fault_of(problem);
  }

  bool is_in_place(const Problem& problem) const override { return moves_in_place(problem); }
};

}  // namespace

const ParameterSpace& TransposePolicy::space() {
  using P = TransposePolicy;
  // The model cannot tell most of them apart: the first is the untuned choice.
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::staging, staging_parameter({Staging::shared, Staging::shifted})},
      PolicyField{&P::vector, categorical("vector", {"widest", "narrow"}).only_if("staging", {Staging::shared})},
      PolicyField{&P::tile_kib, ordinal("tile_kib", {16, 8, 32, kSmallestTileKib})},
      PolicyField{&P::aspect, categorical("aspect", {"square", "tall", "wide"})},
      PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512, kFewestThreads})},
      PolicyField{&P::order, categorical("order", {"rows", "columns", "groups"})});
  return space;
}

const KernelFamily& transpose_family() { return the_family<TransposeFamily>(); }

Problem transpose_problem(const TransposeSpec& spec, std::uint32_t alignment, bool in_place) {
  const bool is_of_pairs = spec.element_bytes == 16;
  Problem problem{.family = &transpose_family(),
                  .operation = static_cast<std::uint8_t>((is_of_pairs ? 2 : 0) + (in_place ? 1 : 0)),
                  .dtype = moved::dtype_of_size(is_of_pairs ? 8 : spec.element_bytes),
                  .extents = {spec.batch, spec.rows, spec.columns},
                  .pitches = named_pitches({spec.in_pitch, spec.out_pitch}, spec.columns, spec.rows)};
  return with_alignment_of_rows(problem, alignment);
}

}  // namespace hone
