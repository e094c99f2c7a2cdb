// TransposeTile: what a policy of transposes makes of a problem.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "kernel_templates/transpose_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/moved_elements.h"
#include "runtime/families/transpose/transpose_policy.h"

namespace hone::transposing {

inline constexpr int kSmallestTileKib = 4;
inline constexpr int kFewestThreads = 64;

inline constexpr int kMostRegisters = 255;  ///< of a thread

/// The time that a thread takes for an element, with its way through shared memory: u16 of 4096x16384 in tiles of
/// 16 KiB take 104.8 µs by 64 threads, of which 256 are resident on an SM, and 97.5 by 128, of which 640 are (H100,
/// CUDA 13.0, 2026-11-25).
inline constexpr double kElementNs = 32;

/// The traffic of accesses of 1 and of 2 bytes by whole warps, which are a fourth and a half of a line: where rows
/// begin anywhere, u8 of 31x2097153 take 110.3 µs so, and 49.6 by vectors of 16 bytes in strips; u16 of 12289x4097 86.4
/// and 75.6, of 2000x50257 151.8 and 144.7. Accesses of 4 bytes take as long as vectors (H100, CUDA 13.0, 2026-11-26).
inline constexpr double kTrafficOfBytes = 2, kTrafficOfPairsOfBytes = 1.12;

/// The traffic of tiles that follow each other along the long side: their neighbours on the short one run much later,
/// with the lines that both share. 2000x50257 u16 take 155.9 µs along input rows and 141.7 along output rows,
/// 999x100003 u32 328 and 278; 65536x1024 and 1024x65536 u16, whose rows are aligned, have winners along the short
/// side, too (H100, CUDA 13.0, 2026-11-26).
inline constexpr double kTrafficAlongLongSide = 1.02;

/// The memory latencies that a strip spends on reading its pieces element by element, with no load in flight: u16 of
/// 1000x33 take 3.33 µs in strips and 3.08 in other tiles (H100, CUDA 13.0, 2026-11-26).
inline constexpr double kStripLatencies = 0.5;

/// Rows of fewer bytes leave lanes of wide packs far apart.
inline constexpr std::int64_t kShortRowBytes = 128;

inline constexpr int kSectorBytes = 32;  ///< of a cache line
inline constexpr int kLineBytes = 128;   ///< strips have whole lines

/// The differences of the operations: matrices that are their own output, and elements that are pairs of 64 bits.
inline bool moves_in_place(const Problem& problem) { return problem.operation % 2 == 1; }
inline bool is_of_pairs(const Problem& problem) { return problem.operation >= 2; }

/// Returns the size of the elements that are moved as one.
inline int moved_bytes(const Problem& problem) {
  return static_cast<int>(element_bytes(problem)) * (is_of_pairs(problem) ? 2 : 1);
}

inline std::int64_t rows_of(const Problem& problem) { return problem.extents[1]; }
inline std::int64_t columns_of(const Problem& problem) { return problem.extents[2]; }

inline Pitches pitches_of(const Problem& problem) {
  return {pitch_of(problem, 0, columns_of(problem)), pitch_of(problem, 1, rows_of(problem))};
}

/// The smallest power of two that is no smaller, up to one that no tile reaches.
inline int power_of_two(std::int64_t extent) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(extent, 1 << 20))));
}

/// The C++ type of what is moved as one.
inline std::string element_type(const Problem& problem) {
  if (!is_of_pairs(problem)) return std::string(info(problem.dtype).cuda_name);
  return fmt::format("hone::Wide<{}>", std::max(problem.alignment, std::uint32_t{8}));
}

/// The tile that a policy has for a class: it depends on which sides of the matrices are short.
struct TransposeTile : TransposePolicy {
  const Problem& problem;
  bool in_place;
  bool shifted;   ///< by transpose_shifted.cuh
  bool strips;    ///< by transpose_strips.cuh
  bool few_rows;  ///< the input has no longer columns than rows
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
        strips(staging == Staging::strips),
        few_rows(last_of(of, 1) <= last_of(of, 2)),
        element_bytes(moved_bytes(of)) {
    const auto alignment = static_cast<int>(problem.alignment);
    const std::int64_t most_rows = last_of(problem, 1), most_columns = last_of(problem, 2);

    widest_bytes = std::max(alignment, element_bytes);
    while (widest_bytes > element_bytes && widest_bytes > std::min(most_rows, most_columns) * element_bytes)
      widest_bytes /= 2;
    const bool is_of_narrow_vectors = vector == Vector::narrow;
    vector_bytes = shifted || strips      ? static_cast<int>(kMaxAlignment)
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
    if (strips) {
      is_narrow = is_low = false;
      tile_rows = few_rows ? static_cast<int>(most_across()) : strip_length(most_across());
      tile_columns = few_rows ? strip_length(most_across()) : static_cast<int>(most_across());
    }
    is_small = tile_columns > power_of_two(most_columns) || tile_rows > power_of_two(most_rows);
  }

  /// Input rows before a tile's first one that its block loads as well, so that its pieces of output rows start at
  /// sectors.
  int step_rows() const { return shifted ? kSectorBytes / element_bytes : 0; }
  std::int64_t tile_bytes() const {
    return strips ? std::int64_t{tile_kib} << 10 : std::int64_t{element_bytes} * tile_rows * tile_columns;
  }

  /// The longest short side of the class, up to one that is longer than that of strips.
  std::int64_t most_across() const { return std::clamp<std::int64_t>(last_of(problem, few_rows ? 1 : 2), 1, 1 << 12); }
  /// The elements of a strip's pieces, lines of 128 bytes, for a short side.
  int strip_length(std::int64_t across) const {
    return static_cast<int>(at_least_one((tile_kib << 10) / kLineBytes / across) * (kLineBytes / element_bytes));
  }

  /// Returns the most that a block loads beside a strip: a sector of each input row, or a line of each output row.
  std::int64_t margin_bytes() const { return most_across() * (few_rows ? kSectorBytes : kLineBytes); }

  /// Vectors, before it uses any.
  int loads_per_thread() const {
    if (strips) return static_cast<int>(divide_up((tile_bytes() + margin_bytes()) / vector_bytes, block_threads));
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
    if (strips) return tile_bytes() + margin_bytes() + vector_bytes;
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
    if (strips) {
      const std::int64_t across = at_least_one(few_rows ? rows_of(problem) : columns_of(problem));
      const std::int64_t along = few_rows ? columns_of(problem) : rows_of(problem) + kLineBytes / element_bytes - 1;
      return at_least_one(problem.extents[0] * divide_up(along, strip_length(across)));
    }
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
        shifted || strips ? tile_bytes() / vector_bytes : std::int64_t{tile_rows / width} * (tile_columns / width);
    const int loads = loads_per_thread();
    return first_reason(
        {reason_if((shifted || strips) && problem.alignment >= kMaxAlignment,
                   "all rows are aligned, nothing is shifted"),
         reason_if((shifted || strips) && (in_place || element_bytes > 8),
                   "only elements of up to 8 bytes are shifted, and not in place"),
         reason_if(in_place && (!is_square || order != Order::rows),
                   "only square tiles in the order of rows change places"),
         check_blocks(facts, block_threads),
         reason_if(shifted && shortest * element_bytes < kShortRowBytes,
                   "shifted tiles have sides of 128 bytes or more"),
         reason_if(strips && kLineBytes * most_across() > tile_bytes(), "a strip has lines of 128 bytes or more"),
         reason_if(packs < block_threads, "a tile has fewer packs than threads"),
         reason_if(loads * std::max(1, vector_bytes / 4) > kMostRegisters, "more loads a thread than registers"),
         check_static_smem(smem_bytes())});
  }

  /// The kernel as C++, and the template that it is of.
  std::string kernel() const {
    constexpr std::array<std::string_view, 3> kOrders{"rows", "columns", "groups"};
    if (strips)
      return fmt::format("StripTranspose<T, {}, {}, {}, {}, Index>", tile_bytes(), most_across(), block_threads,
                         few_rows);
    return fmt::format("{}, {}, {}, {}, hone::TileOrder::{}, {}Index>",
                       shifted ? "ShiftedTranspose<T" : fmt::format("Transpose<T, {}", vector_bytes), tile_rows,
                       tile_columns, block_threads, kOrders[static_cast<std::size_t>(order)],
                       !shifted ? "" : last_of(problem, 2) <= tile_columns ? "true, " : "false, ");
  }
  std::string_view source_file() const {
    return strips ? "transpose_strips.cuh" : shifted ? "transpose_shifted.cuh" : "transpose.cuh";
  }

  Unit unit() const {
    const std::string source = fmt::format(
        "#include \"{}\"\n\n"
        "using T = {};\n"
        "using Index = {};\n"
        "using Kernel = hone::{};\n"
        "static_assert(sizeof(T) == {} && sizeof(Kernel::Tile) * {} == {},\n"
        "              \"host and device disagree on the policy\");\n",
        source_file(), element_type(problem), index_type(needs_wide_tiles()), kernel(), element_bytes,
        in_place ? 2 : 1, smem_bytes());
    return unit_of(source, {kernel_entry(in_place ? "Kernel::swap" : "Kernel::transpose", block_threads)});
  }

  double traffic() const {
    const bool is_along_long_side = order == Order::rows      ? columns_of(problem) > rows_of(problem)
                                    : order == Order::columns ? rows_of(problem) > columns_of(problem)
                                                              : false;
    const double of_order = is_along_long_side && !strips && !in_place ? kTrafficAlongLongSide : 1;
    return of_order * (vector_bytes == 1 ? kTrafficOfBytes : vector_bytes == 2 ? kTrafficOfPairsOfBytes : 1);
  }

  WorkShape shape() const {
    return {.tiles = tiles(),
            .bytes_in_flight_per_block = tile_bytes() * (in_place ? 2 : 1),
            .traffic = traffic(),
            .independent_blocks = true,
            .pipeline_fill_latencies = strips ? kStripLatencies : 0,
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

}  // namespace hone::transposing
