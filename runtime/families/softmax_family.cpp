#include "runtime/families/softmax_family.h"

#include <algorithm>
#include <bit>
#include <random>

#include <fmt/format.h>

#include "runtime/families/softmax_reference.h"

namespace hone {
namespace {

using Way = SoftmaxRowVariant::Way;

constexpr std::size_t kRowThreads = 0, kBlockThreads = 1, kHold = 2;

// Values of row_threads: lanes of a group up to 32, then these.
constexpr int kWholeBlock = 100, kChunks = 200, kPipeline = 201;

/// Values of `hold` from here on are KiB of shared memory, below packs in registers.
constexpr int kLeastSmemKib = 48;

/// Elements of a row that a thread of a tile takes one by one.
constexpr std::int64_t kMostElementsEach = 24;

/// In registers: 1024 threads have 64 each, of which 8 packs leave too few (24 to 40 bytes spilled on sm_90, CUDA
/// 13.0).
constexpr int kMostPacksPerBlock = 1024 * 6;

/// Rows of fewer bytes a block are no work for several blocks.
constexpr std::int64_t kLeastBytesPerBlock = 4096;

/// Two launches and a second reading of everything cost more than a block that is busy for a while.
constexpr std::int64_t kLeastChunkedBytes = 32768;

/// Shorter rows have not enough chunks for all blocks of a pipeline, which then holds too many rows in L2.
constexpr std::int64_t kLeastPipelinedBytes = 128 * 1024;

/// Of a chunk, at once: of more, few blocks hold too many bytes of rows in L2 (and f64 spills).
constexpr int kMostPipelinedPacks = 2048;

/// Rows whose partial results a pipeline keeps (kRing of softmax_pipeline.cuh).
constexpr std::int64_t kPipelinedRows = 16;

/// The numbers that a variant has on a problem. The same for all problems of one size class, but for `rows` and
/// `columns`.
struct Layout {
  SoftmaxRowVariant variant;
  SoftmaxTraits traits;
  std::int64_t rows, columns;
  std::int64_t center_packs;   ///< of a row in the middle of the class
  std::int64_t row_threads;    ///< that share a row; of chunks, of a chunk
  std::int64_t row_packs = 1;  ///< of a row in each thread's registers
  std::int64_t rows_at_once = 1;
  std::int64_t elements_each = 1;  ///< of a row for each thread of a tile
  bool is_aligned;

  Layout(const Problem& problem, const Variant& of)
      : variant(of),
        traits(problem),
        rows(problem.extents[0]),
        columns(problem.extents[1]),
        center_packs(std::max<std::int64_t>(1, center_of(problem, 1) / traits.pack_elements)),
        row_threads(variant.group_lanes > 0 ? variant.group_lanes
                                            : std::int64_t{variant.block_threads} * variant.cluster_blocks),
        is_aligned(problem.alignment >= kMaxAlignment) {
    if (variant.way == Way::group) {
      row_packs = divide_up(center_packs, row_threads);
      rows_at_once = std::max<std::int64_t>(1, variant.packs / row_packs);
    } else if (variant.way == Way::tiles) {
      elements_each = std::max<std::int64_t>(1, divide_up(last_of(problem, 1), row_threads));
      // Two 16-byte loads a thread in flight.
      const std::int64_t row_bytes = center_of(problem, 1) * traits.in_bytes;
      rows_at_once = std::clamp<std::int64_t>(2 * kMaxAlignment * row_threads / row_bytes, 1, 8);
    } else {
      row_packs = variant.packs;
    }
  }

  std::int64_t groups() const { return variant.group_lanes > 0 ? variant.block_threads / variant.group_lanes : 1; }
  std::int64_t tile_rows() const { return groups() * rows_at_once; }
  std::int64_t packs() const { return columns / traits.pack_elements; }
  std::int64_t pack_in_bytes() const { return traits.pack_elements * traits.in_bytes; }

  /// Packs for each thread to hold in shared memory.
  std::int64_t shared_packs(std::int64_t packs_of_row) const {
    const std::int64_t room = variant.smem_kib * 1024 / (variant.block_threads * pack_in_bytes());
    return std::min(room, divide_up(packs_of_row, row_threads));
  }

  std::int64_t tile_smem_bytes(std::int64_t of_columns) const {
    const auto area = [&](std::int64_t bytes) { return divide_up(tile_rows() * of_columns * bytes, 16) * 16 + 16; };
    return area(traits.in_bytes) + area(traits.out_bytes);
  }

  std::int64_t smem_bytes(std::int64_t of_columns) const {
    if (variant.way == Way::tiles) return tile_smem_bytes(of_columns);
    if (variant.smem_kib == 0) return 0;
    return shared_packs(of_columns / traits.pack_elements) * variant.block_threads * pack_in_bytes();
  }

  /// Packs of a row that its threads hold together.
  std::int64_t held_packs(std::int64_t packs_of_row) const {
    if (variant.way == Way::tiles) return packs_of_row;
    if (variant.cuts_rows()) return 0;
    return row_threads * (variant.smem_kib > 0 ? shared_packs(packs_of_row) : row_packs);
  }

  /// Blocks at work of which each has its turns.
  std::int64_t tiles() const {
    switch (variant.way) {
      case Way::group:
      case Way::tiles: return std::max<std::int64_t>(1, divide_up(rows, tile_rows()));
      case Way::block:
      case Way::cluster: return std::max<std::int64_t>(1, rows) * variant.cluster_blocks;
      case Way::chunks:
      case Way::pipeline: break;
    }
    return std::max<std::int64_t>(1, rows) * chunk_tiles();
  }

  /// Loads of a whole block that a row takes, which more chunks could not share out.
  std::int64_t chunk_tiles() const {
    return std::max<std::int64_t>(1,
                                  divide_up(packs(), std::int64_t{variant.block_threads} * std::max(1, variant.packs)));
  }

  std::int64_t grid(std::int64_t max_blocks) const {
    const std::int64_t cluster = variant.cluster_blocks;
    return std::max(cluster, std::min(max_blocks, tiles()) / cluster * cluster);
  }

  std::int64_t chunks(std::int64_t max_blocks) const {
    if (variant.way == Way::pipeline) return std::min(chunk_tiles(), traits.most_partials() / kPipelinedRows);
    const std::int64_t row_count = std::max<std::int64_t>(1, rows);
    const std::int64_t most = std::max<std::int64_t>(1, std::min(chunk_tiles(), traits.most_partials() / row_count));
    return best_chunks(grid(max_blocks), row_count, most);
  }

  /// Rows whose chunks are published before one of the first is written: while all blocks have an item and a ticket for
  /// the next, half of them to publish, nothing is taken that waits.
  std::int64_t lag(std::int64_t max_blocks) const {
    return std::min(kPipelinedRows - 1, 1 + divide_up(grid(max_blocks), chunks(max_blocks)));
  }

  /// Of a workspace.
  std::int64_t partials(std::int64_t max_blocks) const {
    return (variant.way == Way::pipeline ? kPipelinedRows : rows) * chunks(max_blocks);
  }
};

std::string reject_group(const Layout& layout) {
  const SoftmaxRowVariant& variant = layout.variant;
  if (variant.block_threads > 256) return "groups of lanes need no blocks of more than 256 threads";
  if (variant.group_lanes > layout.center_packs)
    return fmt::format("a row has {} packs for {} lanes", layout.center_packs, variant.group_lanes);
  if (variant.packs % layout.row_packs != 0 || !std::has_single_bit(static_cast<unsigned>(variant.packs)))
    return fmt::format("{} packs a thread hold no whole rows of {} packs", variant.packs, layout.center_packs);
  if (layout.rows_at_once > 4)
    return fmt::format("{} rows at once are more than the registers hold", layout.rows_at_once);
  if (!layout.is_aligned && variant.group_lanes < 8)
    return "the elements outside of packs, which rows that are not aligned have, want 8 lanes or more";
  return "";
}

std::string reject_tiles(const Problem& problem, const Layout& layout, const DeviceFacts& facts) {
  if (layout.is_aligned) return "aligned rows need no tiles in shared memory";
  if (layout.variant.smem_kib != kLeastSmemKib) return "tiles take the shared memory that they need";
  if (layout.variant.group_lanes > center_of(problem, 1))
    return fmt::format("a row has {} elements for {} lanes", center_of(problem, 1), layout.variant.group_lanes);
  if (layout.elements_each > kMostElementsEach)
    return fmt::format("{} elements a lane are more than the registers hold", layout.elements_each);
  const std::int64_t bytes = layout.tile_smem_bytes(last_of(problem, 1));
  if (bytes > facts.smem_bytes_per_block_optin)
    return fmt::format("a tile needs {} bytes of shared memory, the device has {}", bytes,
                       facts.smem_bytes_per_block_optin);
  return "";
}

std::string reject_chunks(const Problem& problem, const Layout& layout) {
  if (layout.variant.smem_kib > 0 || !std::has_single_bit(static_cast<unsigned>(layout.variant.packs)))
    return "chunks hold no packs";
  if (layout.center_packs * layout.pack_in_bytes() < kLeastChunkedBytes)
    return "a row is too short to be cut into chunks";
  if (last_of(problem, 0) > layout.traits.most_partials())
    return fmt::format("{} rows have more partial results than the workspace", last_of(problem, 0));
  return "";
}

std::string reject_pipeline(const Problem& problem, const Layout& layout, const DeviceFacts& facts) {
  const SoftmaxRowVariant& variant = layout.variant;
  if (variant.smem_kib > 0 || !std::has_single_bit(static_cast<unsigned>(variant.packs)))
    return "chunks hold no packs";
  const int packs = variant.block_threads * variant.packs;
  if (packs > kMostPipelinedPacks || variant.block_threads > 512 || variant.packs == 1)
    return "chunks so large or small do not fill a pipeline";
  const std::int64_t row_bytes = layout.center_packs * layout.pack_in_bytes();
  if (row_bytes < kLeastPipelinedBytes) return "a row is too short to be cut into chunks that follow each other";
  if (size_ranges(problem.extents)[0].first < 4) return "few rows have no others to be published meanwhile";
  if (facts.l2_bytes > 0 && 4 * row_bytes > facts.l2_bytes)
    return fmt::format("rows of {} bytes have left L2 when they are read again", row_bytes);
  return "";
}

/// Blocks and clusters of them.
std::string reject_block(const Layout& layout, const DeviceFacts& facts) {
  const SoftmaxRowVariant& variant = layout.variant;
  if (variant.cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", variant.cluster_blocks, facts.max_cluster_blocks);
  if (layout.row_threads > layout.center_packs)
    return fmt::format("a row has {} packs for {} threads", layout.center_packs, layout.row_threads);
  const std::int64_t row_bytes = layout.center_packs * layout.pack_in_bytes();
  if (variant.cluster_blocks > 1 && row_bytes < variant.cluster_blocks * kLeastBytesPerBlock)
    return fmt::format("rows of {} bytes are too short for {} blocks", row_bytes, variant.cluster_blocks);

  const std::int64_t held = layout.held_packs(layout.center_packs);
  if (variant.smem_kib > 0) {
    if (variant.smem_kib * 1024 + 2048 > facts.smem_bytes_per_block_optin)
      return fmt::format("{} KiB of shared memory, the device has {} bytes", variant.smem_kib,
                         facts.smem_bytes_per_block_optin);
    if (variant.smem_kib > kLeastSmemKib &&
        layout.smem_bytes(layout.center_packs * layout.traits.pack_elements) <= variant.smem_kib * 512)
      return "less shared memory would do";
    if (held * 2 < layout.center_packs)
      return fmt::format("holds {} of the {} packs of a row", held, layout.center_packs);
    return "";
  }
  if (variant.block_threads * variant.packs > kMostPacksPerBlock)
    return fmt::format("{} packs a thread of {} threads are more than the registers hold", variant.packs,
                       variant.block_threads);
  if (held > 2 * layout.center_packs)
    return fmt::format("has room for {} packs, a row has {}", held, layout.center_packs);
  // Where nothing else can, a large block reads what it does not hold twice.
  const bool is_last_resort = variant.cluster_blocks == 1 && variant.packs == 8 && variant.block_threads == 512;
  if (held < layout.center_packs && !is_last_resort)
    return fmt::format("holds {} of the {} packs of a row", held, layout.center_packs);
  return "";
}

}  // namespace

SoftmaxRowVariant::SoftmaxRowVariant(const Variant& variant) : block_threads(variant[kBlockThreads]) {
  const int threads = variant[kRowThreads];
  const int hold = variant[kHold];
  (hold < kLeastSmemKib ? packs : smem_kib) = hold;
  if (threads == kChunks || threads == kPipeline) {
    way = threads == kChunks ? Way::chunks : Way::pipeline;
  } else if (threads > kWholeBlock) {
    way = Way::cluster;
    cluster_blocks = threads - kWholeBlock;
  } else if (threads < kWholeBlock) {
    way = smem_kib > 0 ? Way::tiles : Way::group;
    group_lanes = threads;
  }
}

SoftmaxFamily::SoftmaxFamily()
    : space_(
          {{"row_threads",
            {1, 2, 4, 8, 16, 32, kWholeBlock, 102, 104, 108, 116, kChunks, kPipeline},
            {"1", "2", "4", "8", "16", "32", "block", "cluster_2", "cluster_4", "cluster_8", "cluster_16", "chunks",
             "pipeline"}},
           {"block_threads", {128, 256, 512, 1024}},
           {"hold",
            {1, 2, 3, 4, 6, 8, kLeastSmemKib, 112, 224},
            {"1", "2", "3", "4", "6", "8", "shared_48", "shared_112", "shared_224"}}}) {}

std::string SoftmaxFamily::reject(const Problem& problem, const Variant& variant, const DeviceFacts& facts) const {
  const Layout layout(problem, variant);
  if (layout.variant.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", layout.variant.block_threads,
                       facts.max_threads_per_block);
  switch (layout.variant.way) {
    case Way::group: return reject_group(layout);
    case Way::tiles: return reject_tiles(problem, layout, facts);
    case Way::chunks: return reject_chunks(problem, layout);
    case Way::pipeline: return reject_pipeline(problem, layout, facts);
    default: return reject_block(layout, facts);
  }
}

Unit SoftmaxFamily::unit(const Problem& problem, const Variant& variant) const {
  const Layout layout(problem, variant);
  const SoftmaxRowVariant& row = layout.variant;
  const std::string_view acc = info(layout.traits.accumulator).cuda_name;
  const bool is_wide = needs_wide_index(problem, 0) || needs_wide_index(problem, 1);

  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem), is_wide ? 64 : 32, space_.to_string(variant));
  unit.source = fmt::format(
      "#include \"{header}\"\n\n"
      "using Types = hone::SoftmaxTypes<{types}, {index}, {log}, {aligned}>;\n"
      "using Kernel = hone::Softmax<Types, {threads}>;\n"
      "static_assert(Types::kElements == {pack} && sizeof(Types::State) == {state}, \"host and device disagree\");\n\n"
      "#define HONE_PARAMETERS const Types::In* in, Types::Out* out, long long rows, long long columns, \\\n"
      "    long long in_pitch, long long out_pitch, {acc} factor, {acc} exponent\n"
      "#define HONE_ROWS {{in, out, static_cast<Types::Index>(rows), static_cast<Types::Index>(columns), in_pitch, \\\n"
      "    out_pitch, {{factor, exponent}}}}\n\n",
      fmt::arg("header", row.way == Way::tiles      ? "softmax_tiles.cuh"
                         : row.way == Way::pipeline ? "softmax_pipeline.cuh"
                                                    : "softmax.cuh"),
      fmt::arg("types", type_list(problem)), fmt::arg("index", is_wide ? "unsigned long long" : "unsigned"),
      fmt::arg("log", layout.traits.is_log), fmt::arg("aligned", layout.is_aligned),
      fmt::arg("threads", row.block_threads), fmt::arg("pack", layout.traits.pack_elements),
      fmt::arg("state", layout.traits.state_bytes()), fmt::arg("acc", acc));

  const std::string entry =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) hone_softmax", row.block_threads);
  switch (row.way) {
    case Way::group:
      unit.source += fmt::format("{}(HONE_PARAMETERS) {{ Kernel::groups<{}, {}, {}>(HONE_ROWS); }}\n", entry,
                                 row.group_lanes, layout.row_packs, layout.rows_at_once);
      break;
    case Way::tiles:
      unit.source +=
          fmt::format("{}(HONE_PARAMETERS) {{\n  hone::SoftmaxTiles<Types, {}, {}, {}, {}>::run(HONE_ROWS);\n}}\n",
                      entry, row.block_threads, row.group_lanes, layout.elements_each, layout.rows_at_once);
      break;
    case Way::block:
    case Way::cluster: {
      const std::string cluster = row.way == Way::cluster ? fmt::format("{}", row.cluster_blocks) : "";
      const std::string_view kind = row.way == Way::cluster ? "cluster" : "block";
      if (row.smem_kib > 0) {
        unit.source +=
            fmt::format("{}(HONE_PARAMETERS, unsigned packs) {{ Kernel::{}_in_shared{}(HONE_ROWS, packs); }}\n", entry,
                        kind, cluster.empty() ? "" : "<" + cluster + ">");
      } else {
        unit.source += fmt::format("{}(HONE_PARAMETERS) {{ Kernel::{}_in_registers<{}{}{}>(HONE_ROWS); }}\n", entry,
                                   kind, cluster, cluster.empty() ? "" : ", ", row.packs);
      }
      break;
    }
    case Way::chunks:
      unit.source += fmt::format(
          "{0}(HONE_PARAMETERS, unsigned chunks, void* workspace) {{\n"
          "  Kernel::publish_chunks<{1}>(HONE_ROWS, chunks, workspace);\n}}\n"
          "{0}_write(HONE_PARAMETERS, unsigned chunks, void* workspace) {{\n"
          "  Kernel::write_chunks<{1}>(HONE_ROWS, chunks, workspace);\n}}\n",
          entry, row.packs);
      break;
    case Way::pipeline:
      unit.source += fmt::format(
          "{}(HONE_PARAMETERS, unsigned chunks, void* workspace, unsigned lag) {{\n"
          "  using Pipeline = hone::SoftmaxPipeline<Types, {}, {}>;\n"
          "  static_assert(Pipeline::kRing == {}, \"host and device disagree\");\n"
          "  Pipeline::run(HONE_ROWS, chunks, lag, workspace);\n}}\n",
          entry, row.block_threads, row.packs, kPipelinedRows);
      break;
  }
  unit.entries.emplace_back("hone_softmax");
  if (row.way == Way::chunks) unit.entries.emplace_back("hone_softmax_write");
  return unit;
}

WorkShape SoftmaxFamily::shape(const Problem& problem, const Variant& variant) const {
  const Layout layout(problem, variant);
  const SoftmaxRowVariant& row = layout.variant;
  WorkShape shape{.block_threads = row.block_threads,
                  .dynamic_smem_bytes = static_cast<std::uint32_t>(layout.smem_bytes(layout.columns)),
                  .tiles = layout.tiles(),
                  .launches = row.way == Way::chunks ? 2 : 1,
                  .dependent_launch = true,
                  .cluster_blocks = row.cluster_blocks};
  const std::int64_t row_bytes = layout.columns * layout.traits.in_bytes;
  const double read_share = static_cast<double>(layout.traits.in_bytes) /
                            static_cast<double>(layout.traits.in_bytes + layout.traits.out_bytes);
  if (row.cuts_rows()) {
    shape.bytes_in_flight_per_block = row.block_threads * row.packs * layout.pack_in_bytes();
    shape.traffic = row.way == Way::chunks ? 1 + read_share : 1;
  } else if (row.way == Way::group || row.way == Way::tiles) {
    shape.bytes_in_flight_per_block = layout.tile_rows() * row_bytes;
  } else {
    const std::int64_t packs = std::max<std::int64_t>(1, layout.packs());
    const std::int64_t held = std::min(packs, layout.held_packs(packs));
    shape.bytes_in_flight_per_block = held * layout.pack_in_bytes() / row.cluster_blocks;
    shape.traffic = 1 + read_share * static_cast<double>(packs - held) / static_cast<double>(packs);
  }
  return shape;
}

std::size_t SoftmaxFamily::workspace_bytes(const Problem& problem, const Candidate& candidate) const {
  const Layout layout(problem, candidate.variant);
  if (!layout.variant.cuts_rows()) return 0;
  const auto partials = static_cast<std::size_t>(layout.partials(candidate.geometry.max_blocks));
  return kWorkspaceHeaderBytes + partials * layout.traits.state_bytes();
}

void SoftmaxFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                           void* workspace, LaunchList& launches) const {
  const Layout layout(problem, candidate.variant);
  const SoftmaxRowVariant& row = layout.variant;
  const int count = row.way == Way::chunks ? 2 : 1;
  for (int i = 0; i < count; ++i) {
    Launch& launch = launches.add();
    launch.entry = i;
    launch.grid.x = static_cast<unsigned>(layout.grid(candidate.geometry.max_blocks));
    launch.block.x = static_cast<unsigned>(row.block_threads);
    launch.dynamic_smem_bytes = static_cast<std::uint32_t>(layout.smem_bytes(layout.columns));
    launch.cluster_blocks = static_cast<unsigned>(row.cluster_blocks);
    launch.dependent_launch = true;
    for (void* buffer : buffers) launch.arguments.push(buffer);
    launch.arguments.push(static_cast<long long>(layout.rows));
    launch.arguments.push(static_cast<long long>(layout.columns));
    push_tail(problem, launch);
    if (row.cuts_rows()) {
      launch.arguments.push(static_cast<unsigned>(layout.chunks(candidate.geometry.max_blocks)));
      launch.arguments.push(workspace);
      if (row.way == Way::pipeline)
        launch.arguments.push(static_cast<unsigned>(layout.lag(candidate.geometry.max_blocks)));
    } else if (row.smem_kib > 0 && row.way != Way::tiles) {
      launch.arguments.push(static_cast<unsigned>(layout.shared_packs(layout.packs())));
    }
  }
}

std::vector<ElementRange> SoftmaxFamily::verified_parts(const Problem& problem, int) const {
  constexpr std::int64_t kElements = 1 << 15;  // to compute, of all rows together
  constexpr std::int64_t kPiece = 1024;        // to compare, at the beginning and end of a row and in its middle
  const std::int64_t rows = problem.extents[0];
  const std::int64_t columns = problem.extents[1];
  if (rows == 0 || columns == 0) return {};
  const std::int64_t count = std::min(rows, std::max<std::int64_t>(3, kElements / columns));
  std::vector<std::int64_t> chosen{0, rows - 1};
  const std::int64_t run = std::max<std::int64_t>(1, kPiece / columns);  // short rows side by side: each part is a copy
  std::mt19937_64 random(static_cast<std::uint64_t>(rows * 31 + columns));
  while (count < rows && static_cast<std::int64_t>(chosen.size()) < count) {
    const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows));
    for (std::int64_t row = first; row < std::min(rows, first + run); ++row) chosen.push_back(row);
  }
  if (count == rows) {
    chosen.resize(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) chosen[static_cast<std::size_t>(row)] = row;
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());

  std::vector<ElementRange> parts;
  const auto add = [&](std::int64_t first, std::int64_t length) {
    if (!parts.empty() && parts.back().first + parts.back().count == first) parts.back().count += length;
    else parts.push_back({first, length});
  };
  for (const std::int64_t row : chosen) {
    const std::int64_t first = row * pitch(problem, 1);
    if (columns <= 3 * kPiece) {
      add(first, columns);
    } else {
      add(first, kPiece);
      add(first + columns / 2, kPiece);
      add(first + columns - kPiece, kPiece);
    }
  }
  return parts;
}

std::string SoftmaxFamily::verify(const Problem& problem, const Candidate& candidate,
                                  std::span<const std::vector<std::byte>> patterns,
                                  std::span<const std::vector<std::byte>> outputs) const {
  const Layout layout(problem, candidate.variant);
  // A thread's packs one after the other, trees in a pack, a tile, a warp, a block, a cluster; then the chunks.
  const std::int64_t threads =
      layout.row_threads * (layout.variant.cuts_rows() ? layout.chunks(candidate.geometry.max_blocks) : 1);
  const std::int64_t rounds = divide_up(std::max<std::int64_t>(layout.packs(), 1), threads) + layout.elements_each;
  const softmax_reference::Computation computation{.dtype = layout.traits.in,
                                                   .result = layout.traits.out,
                                                   .accumulator = layout.traits.accumulator,
                                                   .scale = problem.scalars[0].value_or(1),
                                                   .is_log = layout.traits.is_log,
                                                   .chain = rounds + 48};
  const std::int64_t in_pitch = pitch(problem, 0);
  const std::int64_t out_pitch = pitch(problem, 1);
  const auto line_of = [&](std::int64_t element) {
    const std::int64_t row = element / out_pitch;
    return softmax_reference::Line{
        .elements = layout.columns, .in_first = row * in_pitch, .out_first = row * out_pitch};
  };
  const std::vector<ElementRange> parts = verified_parts(problem, 1);
  return softmax_reference::verify(computation, patterns[0], parts, line_of, outputs[0]);
}

const KernelFamily& softmax_family() {
  static const SoftmaxFamily family;
  return family;
}

}  // namespace hone
