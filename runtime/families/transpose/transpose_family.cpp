#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <hone/transpose_spec.h>

#include "runtime/families/transpose/transpose_tile.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 4> kOperations{"transpose", "transpose_in_place", "transpose_pairs",
                                                      "transpose_pairs_in_place"};

using namespace transposing;
using Aspect = TransposePolicy::Aspect;
using Order = TransposePolicy::Order;

/// A thread's loads each take a register at least, and its tile no more than a quarter of them.
constexpr int kMostLoadsPerThread = 32;
constexpr std::int64_t kLeastBytesPerThread = 16, kMostBytesPerThread = 256;

/// The input rows that a tile has in common with the next are a fourth of those of smaller tiles, and more.
constexpr int kSmallestShiftedTileKib = 16;

/// Packs of 16 bytes a thread: fewer leave threads idle in the last iteration, more occupy half of its registers.
constexpr int kFewestShiftedLoads = 5, kMostShiftedLoads = 14;

/// Packs of 16 bytes a thread in strips.
constexpr int kFewestStripLoads = 3, kMostStripLoads = 6;

struct TileView : PolicyView<TransposeTile> {
  using PolicyView::PolicyView;

  SizeRange rows = size_ranges(problem.extents)[1], columns = size_ranges(problem.extents)[2];
  std::int64_t loads = loads_per_thread(), bytes = loads * vector_bytes;  ///< of a thread

  std::int64_t shortest_bytes() const { return std::min(rows.first, columns.first) * element_bytes; }
  std::int64_t longest_bytes() const { return std::min(rows.last, columns.last) * element_bytes; }
  bool is_of_narrow_vectors() const { return !shifted && vector == Vector::narrow; }
};

constexpr std::array<PruneRule<TileView>, 13> kPruneRules{{
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
    {"only rows of less than 128 bytes are worth strips", "u16 of 300007x100 and 100x300007: 102.2 and 99.0 % (H100)",
     [](const TileView& v) { return v.strips && v.shortest_bytes() >= kShortRowBytes; }},
    {"3 to 6 loads a thread are worth trying in strips", "u16 of 31x1048577 and 1048577x31: 105.9 and 101.4 % (H100)",
     [](const TileView& v) { return v.strips && (v.loads < kFewestStripLoads || v.loads > kMostStripLoads); }},
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
                      .kernels = {"transpose.cuh", "transpose_shifted.cuh", "transpose_strips.cuh"}}) {}

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
  static const auto& space = never_destroyed(space_of<P>(
      PolicyField{&P::staging, staging_parameter({Staging::shared, Staging::shifted, Staging::strips})},
      PolicyField{&P::vector, categorical("vector", {"widest", "narrow"}).only_if("staging", {Staging::shared})},
      PolicyField{&P::tile_kib, ordinal("tile_kib", {16, 8, 32, kSmallestTileKib})},
      PolicyField{&P::aspect, categorical("aspect", {"square", "tall", "wide"})
                                  .only_if("staging", {Staging::shared, Staging::shifted})},
      PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512, kFewestThreads})},
      PolicyField{&P::order, categorical("order", {"rows", "columns", "groups"})
                                 .only_if("staging", {Staging::shared, Staging::shifted})}));
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
