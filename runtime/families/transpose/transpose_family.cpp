#include "runtime/families/transpose/transpose_family.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "kernel_templates/transpose_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/moved_elements.h"
#include "runtime/families/transpose/transpose_verifier.h"
#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 4> kOperations{"transpose", "transpose_in_place", "transpose_pairs",
                                                      "transpose_pairs_in_place"};

using Aspect = TransposePolicy::Aspect;

constexpr int kSmallestTileKib = 4;
constexpr int kFewestThreads = 64;

/// A thread's loads each take a register at least, and its tile no more than a quarter of them.
constexpr int kMostLoadsPerThread = 32;
constexpr std::int64_t kLeastBytesPerThread = 16, kMostBytesPerThread = 256;

constexpr int kMostRegisters = 255;  ///< of a thread

/// The input rows that a tile has in common with the next are a fourth of those of smaller tiles, and more.
constexpr int kSmallestShiftedTileKib = 16;

/// Packs of 16 bytes a thread: fewer leave threads idle in the last iteration, more occupy half of its registers.
constexpr int kFewestShiftedLoads = 5, kMostShiftedLoads = 14;

/// Static shared memory of a block, on every GPU.
constexpr std::int64_t kMostSmemBytes = 48 << 10;

/// Rows of fewer bytes leave lanes of wide packs far apart.
constexpr std::int64_t kShortRowBytes = 128;

/// Of what is moved as one.
int moved_bytes(const Problem& problem) {
  return static_cast<int>(element_bytes(problem)) * (is_of_pairs(problem) ? 2 : 1);
}

std::int64_t rows_of(const Problem& problem) { return problem.extents[1]; }
std::int64_t columns_of(const Problem& problem) { return problem.extents[2]; }

Pitches pitches_of(const Problem& problem) { return moved::pitches_of(problem, columns_of(problem), rows_of(problem)); }

/// The smallest power of two that is no smaller, up to one that no tile reaches.
int power_of_two(std::int64_t extent) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(extent, 1 << 20))));
}

/// By the largest extents that a winner serves.
bool needs_wide_tiles(const ProblemClass& problem_class, const TransposeTile& tile) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const std::array<SizeRange, 3>& sizes = problem_class.sizes();
  const double tiles = static_cast<double>(sizes[0].last) *
                       (static_cast<double>(sizes[1].last) / tile.tile_rows + 2) *
                       (static_cast<double>(sizes[2].last) / tile.tile_columns + 1);
  return tiles > kMost || static_cast<double>(sizes[1].last) > kMost || static_cast<double>(sizes[2].last) > kMost;
}

/// Tiles, or pairs of tiles that change places.
std::int64_t tiles_of(const Problem& problem, const TransposeTile& tile) {
  const std::int64_t down = divide_up(rows_of(problem) + std::max(0, tile.step_rows() - 1), tile.tile_rows);
  const std::int64_t across = divide_up(columns_of(problem), tile.tile_columns);
  return problem.extents[0] * (tile.in_place ? down * (down + 1) / 2 : down * across);
}

/// From the first element of the first matrix to the last one of the last.
std::int64_t span_of(std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
  return (rows - 1) * pitch + columns;
}

std::string refuse_extents(const Problem& problem) {
  const auto [batch, rows, columns] = problem.extents;
  if (batch < 1 || rows < 1 || columns < 1)
    return fmt::format("transpose was asked for {} × {} × {} elements; every extent must be at least 1", batch, rows,
                       columns);
  const Pitches pitches = pitches_of(problem);
  const std::array<std::int64_t, 2> lengths{columns, rows};
  for (std::size_t i = 0; i < pitches.size(); ++i) {
    const std::string_view side = i == 0 ? "input" : "output";
    if (pitches[i] < lengths[i])
      return fmt::format(
          "transpose was asked for rows of {} elements in the {} at a pitch of {}: it must be at least as long",
          lengths[i], side, pitches[i]);
    if (!product_within_memory({batch, i == 0 ? rows : columns, pitches[i], moved_bytes(problem)}))
      return fmt::format(
          "transpose was asked for {} matrices of {} × {} elements, {} apart in the {}: no memory holds them", batch,
          rows, columns, pitches[i], side);
    if (moved_bytes(problem) < 16 && pitches[i] * moved_bytes(problem) % problem.alignment != 0)
      return fmt::format(
          "transpose was asked for alignment {}, but rows {} elements of {} bytes apart lie otherwise in the {}; "
          "transpose_problem() finds the alignment",
          problem.alignment, pitches[i], moved_bytes(problem), side);
  }
  if (is_in_place(problem) && (rows != columns || pitches[0] != pitches[1]))
    return fmt::format(
        "transpose in place was asked for {} × {} elements at pitches of {} and {}; it takes square matrices "
        "at equal pitches",
        rows, columns, pitches[0], pitches[1]);
  return "";
}

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

TransposeTile::TransposeTile(const ProblemClass& problem_class, const Policy& of)
    : policy(of.as<TransposePolicy>()),
      in_place(is_in_place(problem_class.typical())),
      shifted(policy.staging == Staging::shifted),
      element_bytes(moved_bytes(problem_class.typical())) {
  const std::array<SizeRange, 3>& sizes = problem_class.sizes();
  const auto alignment = static_cast<int>(problem_class.typical().alignment);
  const std::int64_t most_rows = sizes[1].last, most_columns = sizes[2].last;

  vector_bytes = std::max(alignment, element_bytes);
  while (vector_bytes > element_bytes && vector_bytes > std::min(most_rows, most_columns) * element_bytes)
    vector_bytes /= 2;
  if (shifted) {
    if (alignment >= static_cast<int>(kMaxAlignment)) invalid = "all rows are aligned, nothing is shifted";
    else if (in_place || element_bytes > 8) invalid = "only elements of up to 8 bytes are shifted, and not in place";
    else if (std::min(sizes[1].first, sizes[2].first) * element_bytes < kShortRowBytes)
      pruned = "rows are too short to be worth shifting";
    vector_bytes = static_cast<int>(kMaxAlignment);
  } else if (policy.vector == TransposePolicy::Vector::narrow) {
    const int narrow = std::max(element_bytes, vector_bytes / 4);
    const bool is_short = std::min(most_rows, most_columns) * element_bytes < kShortRowBytes;
    if (narrow == vector_bytes) pruned = "elements leave no choice of vectors";
    else if (!is_short && !in_place && element_bytes > 1) pruned = "rows are long enough for the widest vectors";
    vector_bytes = narrow;
  }

  // As square as a power of two allows; where the matrix is narrower than that, as wide as it.
  const int log_aspect = policy.aspect == Aspect::tall ? -1 : policy.aspect == Aspect::wide ? 1 : 0;
  const std::int64_t elements = (std::int64_t{policy.tile_kib} << 10) / element_bytes / (in_place ? 2 : 1);
  const int log_elements = std::countr_zero(static_cast<std::uint64_t>(elements));
  tile_columns = 1 << std::max(0, (log_elements + 1) / 2 + log_aspect);
  tile_rows = static_cast<int>(elements) / tile_columns;
  const int limit_columns = std::max(1, power_of_two(most_columns) >> (policy.aspect == Aspect::tall ? 1 : 0));
  const int limit_rows = std::max(1, power_of_two(most_rows) >> (policy.aspect == Aspect::wide ? 1 : 0));
  const bool is_narrow = tile_columns > limit_columns, is_low = tile_rows > limit_rows;
  if (!in_place && is_narrow && !is_low) {
    tile_columns = limit_columns;
    tile_rows = static_cast<int>(elements) / tile_columns;
    if (policy.aspect == Aspect::wide) pruned = "the matrix is too narrow for other than tall tiles";
  } else if (!in_place && is_low && !is_narrow) {
    tile_rows = limit_rows;
    tile_columns = static_cast<int>(elements) / tile_rows;
    if (policy.aspect == Aspect::tall) pruned = "the matrix has too few rows for other than wide tiles";
  }
  // What is smaller than any tile is left to the smallest that every thread of the smallest block has a part in.
  const int width = vector_bytes / element_bytes;
  int smallest_kib = std::max(kSmallestTileKib, kFewestThreads * width * vector_bytes * (in_place ? 2 : 1) >> 10);
  if (in_place && std::countr_zero(static_cast<unsigned>(smallest_kib << 10) / element_bytes / 2) % 2 == 1)
    smallest_kib *= 2;
  const bool is_small = tile_columns > power_of_two(most_columns) || tile_rows > power_of_two(most_rows);
  if (is_small && (policy.tile_kib > smallest_kib || policy.aspect != Aspect::square))
    pruned = "the matrix is smaller than a tile";
  if (in_place && (tile_rows != tile_columns || policy.order != TransposePolicy::Order::rows))
    invalid = "only square tiles in the order of rows change places";
  if (in_place && policy.aspect != Aspect::square) pruned = "tiles that change places are square in any case";
}

int TransposeTile::loads_per_thread() const {
  if (!shifted) return static_cast<int>(tile_bytes()) * (in_place ? 2 : 1) / block_threads() / vector_bytes;
  // As transpose_shifted.cuh divides them: kPhases · kTurns · kSpans + kLastPacks.
  const int warps = block_threads() / 32, pack = vector_bytes / element_bytes, held_rows = tile_rows + step_rows();
  const std::int64_t phases = std::max(1, pack / warps), phase_warps = std::max(1, warps / pack);
  const std::int64_t turns = divide_up(held_rows / pack, 4 * phase_warps);
  const std::int64_t spans = tile_columns * element_bytes / kShortRowBytes;
  return static_cast<int>(phases * turns * spans + divide_up(held_rows, block_threads()));
}

std::int64_t TransposeTile::smem_bytes() const {
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

std::span<const std::string_view> TransposeFamily::operations() const { return kOperations; }

std::span<const SourceFile> TransposeFamily::sources() const {
  static const std::vector<SourceFile> sources = kernel_sources({"transpose.cuh", "transpose_shifted.cuh"});
  return sources;
}

std::string TransposeFamily::refuse(const Problem& problem) const {
  if (problem.operation >= kOperations.size()) return fmt::format("transpose has no operation {}", problem.operation);
  if (std::string refusal = moved::refuse_dtype(name(), problem.dtype); !refusal.empty()) return refusal;
  if (is_of_pairs(problem) && problem.dtype != DType::u64)
    return fmt::format("{} moves elements of 16 bytes as pairs of u64, not of {}", kOperations[problem.operation],
                       info(problem.dtype).name);
  if (problem.accumulator || problem.result) return "transpose accumulates nothing and keeps the type of the elements";
  return refuse_extents(problem);
}

std::string TransposeFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                      const DeviceFacts& facts) const {
  const TransposeTile tile(problem_class, policy);
  if (!tile.invalid.empty()) return std::string(tile.invalid);
  if (tile.block_threads() > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", tile.block_threads(), facts.max_threads_per_block);
  if (tile.shifted && std::min(tile.tile_rows, tile.tile_columns) * tile.element_bytes < kShortRowBytes)
    return fmt::format("a tile of {} × {} elements has sides of less than {} bytes", tile.tile_rows,
                       tile.tile_columns, kShortRowBytes);
  const int width = tile.vector_bytes / tile.element_bytes;
  const std::int64_t blocks = std::int64_t{tile.tile_rows / width} * (tile.tile_columns / width);
  if (!tile.shifted && (tile.tile_rows < width || tile.tile_columns < width || blocks < tile.block_threads()))
    return fmt::format("a tile of {} × {} elements is less than {} threads load", tile.tile_rows, tile.tile_columns,
                       tile.block_threads());
  if (tile.shifted && tile.tile_bytes() / tile.vector_bytes < tile.block_threads())
    return fmt::format("a tile of {} packs is less than {} threads load", tile.tile_bytes() / tile.vector_bytes,
                       tile.block_threads());
  const std::int64_t loads = tile.loads_per_thread();
  if (std::max(loads, loads * tile.vector_bytes / 4) > kMostRegisters)
    return fmt::format("{} loads of {} bytes a thread are more than there are registers", loads, tile.vector_bytes);
  if (tile.smem_bytes() > kMostSmemBytes)
    return fmt::format("needs {} bytes of shared memory, a block has {}", tile.smem_bytes(), kMostSmemBytes);
  return "";
}

std::string TransposeFamily::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts&) const {
  const TransposeTile tile(problem_class, policy);
  if (!tile.pruned.empty()) return std::string(tile.pruned);
  const std::int64_t loads = tile.loads_per_thread();
  if (tile.shifted) {
    if (tile.policy.tile_kib < kSmallestShiftedTileKib || tile.policy.aspect == Aspect::wide ||
        tile.policy.order == TransposePolicy::Order::groups)
      return fmt::format("wide tiles, those of less than {} KiB and groups are not worth shifting",
                         kSmallestShiftedTileKib);
    if (loads < kFewestShiftedLoads || loads > kMostShiftedLoads)
      return fmt::format("{} loads a thread; {} to {} are worth trying", loads, kFewestShiftedLoads,
                         kMostShiftedLoads);
  }
  const std::int64_t bytes = loads * tile.vector_bytes;
  if (loads > kMostLoadsPerThread || bytes > kMostBytesPerThread)
    return fmt::format("{} loads of {} bytes a thread leave too few registers", loads, tile.vector_bytes);
  if (bytes < kLeastBytesPerThread) return fmt::format("{} bytes a thread are too few to keep memory busy", bytes);
  const bool has_one_column_of_tiles = problem_class.sizes()[2].last <= tile.tile_columns;
  const bool has_one_row_of_tiles = problem_class.sizes()[1].last <= tile.tile_rows;
  if (tile.policy.order != TransposePolicy::Order::rows && (has_one_column_of_tiles || has_one_row_of_tiles))
    return "there is one line of tiles, and one order of it";
  return "";
}

Unit TransposeFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  constexpr std::array<std::string_view, 3> kOrders{"rows", "columns", "groups"};
  const Problem& problem = problem_class.typical();
  const TransposeTile tile(problem_class, policy);
  const bool is_wide = needs_wide_tiles(problem_class, tile);
  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem_class), is_wide ? 64 : 32, space().to_string(policy));
  unit.source = fmt::format(
      "#include \"{header}\"\n\n"
      "using T = {type};\n"
      "using Index = {index};\n"
      "using Kernel = hone::{kernel}{rows}, {columns}, {threads}, hone::TileOrder::{order}, Index>;\n"
      "static_assert(sizeof(T) == {bytes} && sizeof(Kernel::Tile) * {tiles} == {smem},\n"
      "              \"host and device disagree on the policy\");\n",
      fmt::arg("type", moved::element_type(problem.dtype, is_of_pairs(problem), problem.alignment)),
      fmt::arg("index", is_wide ? "unsigned long long" : "unsigned"),
      fmt::arg("header", tile.shifted ? "transpose_shifted.cuh" : "transpose.cuh"),
      fmt::arg("kernel", tile.shifted ? "ShiftedTranspose<T, " : fmt::format("Transpose<T, {}, ", tile.vector_bytes)),
      fmt::arg("rows", tile.tile_rows), fmt::arg("columns", tile.tile_columns),
      fmt::arg("threads", tile.block_threads()),
      fmt::arg("order", kOrders[static_cast<std::size_t>(tile.policy.order)]), fmt::arg("bytes", tile.element_bytes),
      fmt::arg("tiles", tile.in_place ? 2 : 1), fmt::arg("smem", tile.smem_bytes()));
  unit.entries.push_back(kernel_entry(tile.in_place ? "Kernel::swap" : "Kernel::transpose",
                                      std::to_string(tile.block_threads())));
  return unit;
}

WorkShape TransposeFamily::shape(const Problem& problem, const Policy& policy) const {
  const TransposeTile tile(problem, policy);
  return {.block_threads = tile.block_threads(),
          .tiles = std::max<std::int64_t>(1, tiles_of(problem, tile)),
          .bytes_in_flight_per_block = tile.tile_bytes() * (tile.in_place ? 2 : 1),
          .dependent_launch = true,
          .independent_blocks = true};
}

std::int64_t TransposeFamily::bytes_moved(const Problem& problem) const {
  return 2 * problem.extents[0] * rows_of(problem) * columns_of(problem) * moved_bytes(problem);
}

void TransposeFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
                             LaunchList& launches) const {
  const TransposeTile tile(problem, candidate.policy);
  const Pitches pitches = pitches_of(problem);
  Launch& launch = launches.add();
  launch.grid.x = static_cast<unsigned>(std::min(candidate.geometry.max_blocks, tiles_of(problem, tile)));
  launch.block.x = static_cast<unsigned>(tile.block_threads());
  launch.dependent_launch = true;
  launch.arguments.push(TransposeArguments{.in = buffers[0],
                                           .out = buffers[1],
                                           .batch = static_cast<std::uint64_t>(problem.extents[0]),
                                           .rows = static_cast<std::uint64_t>(rows_of(problem)),
                                           .columns = static_cast<std::uint64_t>(columns_of(problem)),
                                           .in_pitch = pitches[0],
                                           .out_pitch = pitches[1]});
}

std::vector<BufferSpec> TransposeFamily::buffers(const Problem& problem) const {
  const auto [batch, rows, columns] = problem.extents;
  const Pitches pitches = pitches_of(problem);
  const std::int64_t parts = is_of_pairs(problem) ? 2 : 1;
  return {{.name = "in",
           .is_input = true,
           .dtype = problem.dtype,
           .elements = parts * span_of(batch * rows, columns, pitches[0])},
          {.name = "out",
           .is_input = false,
           .dtype = problem.dtype,
           .elements = parts * span_of(batch * columns, rows, pitches[1]),
           .alignment = problem.alignment,
           .in_place_of = is_in_place(problem) ? 0 : -1}};
}

const Verifier& TransposeFamily::verifier() const {
  static const TransposeVerifier verifier;
  return verifier;
}

const KernelFamily& transpose_family() {
  static const TransposeFamily family;
  return family;
}

Problem transpose_problem(const TransposeSpec& spec, std::uint32_t alignment, bool in_place) {
  const bool is_of_pairs = spec.element_bytes == 16;
  Problem problem{.family = &transpose_family(),
                  .operation = static_cast<std::uint8_t>((is_of_pairs ? 2 : 0) + (in_place ? 1 : 0)),
                  .dtype = moved::dtype_of_size(is_of_pairs ? 8 : spec.element_bytes),
                  .extents = {spec.batch, spec.rows, spec.columns},
                  .pitches = {spec.in_pitch, spec.out_pitch}};
  // A side by side pitch has no other name.
  if (spec.in_pitch == spec.columns) problem.pitches[0] = 0;
  if (spec.out_pitch == spec.rows) problem.pitches[1] = 0;
  const auto pitch_bytes = static_cast<std::uint64_t>(spec.input_pitch() | spec.output_pitch()) * spec.element_bytes;
  problem.alignment = 1u << std::countr_zero(pitch_bytes | std::uint64_t{alignment} | kMaxAlignment);
  return problem;
}

}  // namespace hone
