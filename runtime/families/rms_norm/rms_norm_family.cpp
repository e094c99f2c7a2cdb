// The rms_norm family: which of its policies make sense, and how its results are verified.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <hone/kernel_family.h>
#include <hone/rms_norm.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/expectation.h"
#include "runtime/families/rms_norm/rms_norm_layout.h"
#include "runtime/families/row_chunks.h"
#include "runtime/families/row_held.h"
#include "runtime/families/work_division.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 4> kOperations{"plain", "weighted", "add", "weighted_add"};

using namespace rms_norm;

/// Rows are typical ones: of what is longer or shorter in a class, a little is read twice or idle.
struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  std::int64_t center_packs = packs, row_bytes = packs * pack_bytes;

  std::int64_t columns() const { return center_of(problem, 1); }
  bool is_chunks() const { return cuts_rows() && combine == Combine::second_kernel; }
  bool is_pipeline() const { return cuts_rows() && combine == Combine::pipeline; }
  HeldRows held_rows_of_all_sms() const { return held_rows(problem.extents[1], facts.sm_count); }
};

constexpr auto kPruneRules = joined(joined(kChunkRules<View>, kHeldRules<View>), std::array<PruneRule<View>, 21>{{
    {"few warps of a block that holds rows take long for each", "110 % for softmax of 64 rows of 2^20 f16 (H100)",
     [](const View& v) { return v.is_held() && v.block_threads < 1024; }},
    {"a cluster holds so short a row, and its blocks wait for each other only",
     "64 rows of 2^20 f16 and f32 take 106 and 218 µs by a grid, 97 and 204 by clusters, 31 of 1048577 57 and 112, and "
     "53 and 109; with weights 70 and 117, and 71 and 130 (H100, CUDA 13.0, 2026-11-27)",
     [](const View& v) {
       constexpr std::int64_t kLeastPlainBytes = 6 << 20;
       return v.is_held() && v.row_bytes < (has_weight(v.problem) ? HeldRows::kLeastRowBytes : kLeastPlainBytes);
     }},
    {"two groups of warps load weights while one alone would wait for them, and add nothing without weights",
     "31 rows of 1048577 f16 and f32 with weights take 70 and 117 µs by two, 83 and 124 by one; 16 of 3000017 f16 "
     "without weights 86 by either (H100, CUDA 13.0, 2026-11-27)",
     [](const View& v) {
       const bool is_by_two = has_weight(v.problem) && v.held_rows_of_all_sms().fit_times(2);
       return v.is_held() && v.row_groups != (is_by_two ? 2 : 1);
     }},
    {"L2 does not keep the weights of rows that are held in part, and a block has too few loads of them in flight",
     "4 rows of 2^24 f16 and f32 with weights take 191 and 355 µs so, 159 and 314 by two kernels; without 117 and 261, "
     "and 138 and 275 (graphs, H100, CUDA 13.0, 2026-11-27)",
     [](const View& v) {
       return v.is_held() && has_weight(v.problem) && !v.held_rows_of_all_sms().are_held_whole();
     }},
    kNoLaunchBounds<View, MinBlocks::one>,
    {"registers hold such rows",
     "1024 rows of 65536 f32 take as long as a copy so, and no candidate in shared memory does (H100, 2026-11-26)",
     [](const View& v) {
       constexpr std::int64_t kBytesOfBlock = 64 * 1024;  // 512 threads of 8 packs
       return v.is_in_shared() && v.packs * v.pack_bytes <= std::max(1, v.facts.max_cluster_blocks) * kBytesOfBlock;
     }},
    {"packs of 16 bytes serve rows that begin anywhere",
     "12289 rows of 4097 f16 take 68.9 µs so and 76.4 in single elements, with weights 69.5 and 79.3, of f32 136.3 and "
     "139.8 (H100, CUDA 13.0, 2026-11-26)",
     [](const View& v) {
       constexpr std::int64_t kLongRow = 8192;
       return v.scope != Scope::warp && v.staging == Staging::direct && !v.cuts_rows() && v.pack_bytes < 8 &&
              v.row_bytes >= kLongRow;
     }},
    {"a block holds the weights of long rows for all that it takes, and loads those of few or short rows with each",
     "1024 rows of 50257 f32 take 110 to 118 µs with weights in shared memory, 138 to 147 with weights loaded for each "
     "row, 3001 of 20011 f16 68 and 76; 12289 of 4097 f32 107 and 98, of f16 64 and 50, 16 of 50257 f32 4.2 and 3.9 "
     "(graphs, H200, CUDA 13.0, 2026-12-01)",
     [](const View& v) {
       constexpr std::int64_t kShortRow = 16 << 10, kManyBytes = 16 << 20;
       const bool are_many = v.row_bytes > kShortRow && v.rows * v.row_bytes >= kManyBytes;
       return v.staging == Staging::shifted && has_weight(v.problem) && v.shares_weights() != are_many;
     }},
    {"64 registers hold a few packs of rows that begin anywhere, and their weights, but not more",
     "12289 rows of 4097 f16 by 128 threads of 4 packs take 49.8 µs so, 53.0 with the 80 that the compiler takes by "
     "itself (graphs, H200, CUDA 13.0, 2026-12-01)",
     [](const View& v) {
       constexpr std::int64_t kFew = 24, kMany = 48;
       const bool are_few = v.begins_anywhere() && !v.is_in_shared() && !v.shares_weights() &&
                            v.registers() >= kFew && v.registers() <= kMany;
       return (v.min_blocks == MinBlocks::one_half) != are_few && !is_host(v.facts);
     }},
    {"the compiler reaches two blocks an SM by itself",
     "64 rows of 2^20 f16 take 98 to 101 µs so, and 111 to 116 with more registers (H100, CUDA 13.0, 2026-11-26)",
     [](const View& v) {
       constexpr std::int64_t kOthers = 44;  // registers: a tile, indices and pointers
       const std::int64_t smem_bytes = v.smem_bytes() + v.facts.smem_bytes_reserved_per_block;
       return v.is_in_shared() && v.min_blocks == MinBlocks::one && 2 * smem_bytes <= v.facts.smem_bytes_per_sm &&
              2 * v.block_threads * (v.registers() + kOthers) <= v.facts.registers_per_sm;
     }},
    {"less shared memory would do", "the same packs of a row are held",
     [](const View& v) { return v.is_in_shared() && v.smem_kib > 32 && v.smem_bytes() <= v.smem_kib * 512; }},
    {"registers and shared memory hold less than half of a row", "100.8 % for softmax (H100, prune_rules)",
     [](const View& v) { return v.is_in_shared() && 2 * v.held_packs < v.packs; }},
    {"half of the threads or of their packs have no work", "102.6 % (H100, prune_rules)",
     [](const View& v) {
       return v.held_packs >= 2 * at_least_one(v.packs) || (v.is_in_tiles() && v.row_threads >= 2 * v.columns());
     }},
    {"packs of 8 bytes, and of 4 in longer rows, need no tiles",
     "2^20 rows of 12 f16 take 18.3 µs without, 18.8 in tiles; 2^19 of 50 f16 36.8 and 37.5, 2^20 of 33 f32 96.7 and "
     "95.8, 1000003 of 7 f32 20.9 and 20.0 (H100, CUDA 13.0, 2026-11-27)",
     [](const View& v) {
       constexpr std::int64_t kLongRow = 64;
       return v.is_in_tiles() && (v.pack_bytes >= 8 || (v.pack_bytes >= 4 && v.row_bytes > kLongRow));
     }},
    {"two, four or eight loads at once are enough of a choice for tiles", kNotMeasured,
     [](const View& v) {
       return v.is_in_tiles() && v.packs_per_thread != 2 && v.packs_per_thread != 4 && v.packs_per_thread != 8;
     }},
    {"reads again what it does not hold, though others hold a row", "130.5 % (H100, prune_rules)",
     [](const View& v) {  // where nothing else can, a large block reads what it does not hold twice
       const bool is_last_resort = v.block_threads == 512 && v.packs_per_thread == 8;
       return !v.cuts_rows() && v.held_packs < v.packs && (v.scope == Scope::warp || !is_last_resort);
     }},
    {"so many packs do not fit the registers",
     "ptxas of CUDA 13.0, sm_90, 2026-11-24: f16 without weights spills 56 bytes with 1024 threads of 8 packs, 72 with "
     "512 of 16; f32 does not; with shared memory, 512 of 8 packs and their weights spill 32",
     [](const View& v) {
       const std::int64_t others = (element_bytes(v.problem) < 4 ? 36 : 24) +  // indices, pointers, a pack as floats
                                   (v.is_in_shared() ? 44 : 0);                // a tile, its weights and the next ones
       const std::int64_t share = std::min<std::int64_t>(224, v.facts.registers_per_sm / v.block_threads);
       return share > 0 && v.registers() > share - others;
     }},
    {"several rows at once, though one alone has enough loads in flight", kNotMeasured,
     [](const View& v) {
       constexpr std::int64_t kEnoughBytes = 64;
       return v.rows_per_thread > 1 && v.rows_per_thread * v.packs_per_thread * v.pack_bytes > kEnoughBytes;
     }},
    {"a block's warps have nothing to tell each other: 256 threads are enough", kNotMeasured,
     [](const View& v) { return v.scope == Scope::warp && v.block_threads > 256; }},
    {"rows are enough for a block each", "119.2 % (H100, prune_rules)",
     [](const View& v) {
       constexpr std::int64_t kEnoughWaves = 8, kPacksOfABlock = 4096;
       return v.scope == Scope::cluster && v.rows > kEnoughWaves * v.facts.sm_count && v.packs <= kPacksOfABlock;
     }},
    {"loads at once of 2, 4 or 8 packs are enough of a choice", kNotMeasured,
     [](const View& v) {
       return v.cuts_rows() && v.packs_per_thread != 2 && v.packs_per_thread != 4 && v.packs_per_thread != 8;
     }},
}});

/// The reference: rows from one period of each input, in double.
class RmsNormVerifier : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem&) const override { return kKinds; }

  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override {
    const BufferSpec spec = problem.family->buffers(problem)[static_cast<std::size_t>(buffer)];
    return float_pattern(problem.dtype, spec.elements, buffer, spec.name == "weight" ? "uniform" : kind);
  }

  /// The problem itself; a pack less in each row, with the pitches kept; one row less; and another eps.
  std::vector<Problem> verified_problems(const Problem& problem) const override {
    const std::int64_t pack = pack_bytes_of(problem) / element_bytes(problem);
    const Problem narrower = smaller(problem, 1, pack, {pitch_of(problem, 0), pitch_of(problem, 1)});
    Problem other = problem;
    other.scalars[0] = 0.5;
    return {problem, narrower, smaller(problem, 0), other};
  }

  std::vector<ElementRange> verified_parts(const Problem& problem, int) const override {
    return row_parts(problem.extents[0], problem.extents[1], pitch_of(problem, 1));
  }

  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const override {
    const std::int64_t chain = Layout(problem, candidate.policy).longest_chain(candidate.geometry.max_blocks);
    std::vector<std::vector<long double>> inputs, found;
    for (const auto& pattern : patterns) inputs.push_back(reduce_reference::decode(problem.dtype, pattern));
    for (const auto& output : outputs) found.push_back(reduce_reference::decode(problem.dtype, output));
    std::size_t at = 0;
    std::int64_t row = -1;
    Factor factor;
    for (const ElementRange& part : verified_parts(problem, 0))
      for (std::int64_t i = part.first; i < part.first + part.count; ++i, ++at) {
        const std::int64_t column = i % pitch_of(problem, 1);
        if (i / pitch_of(problem, 1) != row) {
          row = i / pitch_of(problem, 1);
          factor = factor_of(problem, inputs, row, chain);
        }
        const double h = sum_at(problem, inputs, row, column);
        const double weight = has_weight(problem) ? element(inputs.back(), column) : 1;
        std::string wrong;
        if (!factor.is_unknown) wrong = expected(h, weight, factor).compare(problem.dtype, found[0].at(at));
        if (!wrong.empty()) return fmt::format("column {} of row {}: {}", column, row, wrong);
        if (!has_residual(problem)) continue;
        wrong = reduce_reference::Expectation::exactly(h).compare(problem.dtype, found[1].at(at));
        if (!wrong.empty()) return fmt::format("the sum in column {} of row {}: {}", column, row, wrong);
      }
    return "";
  }

 private:
  static constexpr std::array<std::string_view, 6> kKinds{"uniform", "huge", "subnormal", "zeros", "nan", "infinity"};
  static constexpr double kRoundoff = 0x1p-24, kLeast = 0x1p-149;

  /// Bounds of what a row is multiplied by. is_unknown: sums may or may not overflow, or squares that are subnormal
  /// count.
  struct Factor {
    double lowest = 0, highest = 0;
    bool is_unknown = false;
  };

  static double element(const std::vector<long double>& pattern, std::int64_t index) {
    return static_cast<double>(pattern[static_cast<std::size_t>(index) % pattern.size()]);
  }

  /// x, or x + residual as it is stored: rounding the exact sum to f32 on the way changes nothing.
  static double sum_at(const Problem& problem, const std::vector<std::vector<long double>>& inputs, std::int64_t row,
                       std::int64_t column) {
    const std::int64_t index = row * pitch_of(problem, 0) + column;
    const double x = element(inputs[0], index);
    if (!has_residual(problem)) return x;
    const auto sum = static_cast<float>(x + element(inputs[1], index));
    return with_element_type(problem.dtype,
                             [&]<class T>(T) -> double { return static_cast<float>(static_cast<T>(sum)); });
  }

  /// With u the unit roundoff of f32, a sum of n squares is off by (chain + 2)·u of itself (Higham, Accuracy and
  /// Stability of Numerical Algorithms, §4.2: all terms have one sign) and by what squares lose that are subnormal; the
  /// mean, eps and their sum are rounded, and rsqrt is off by 2 ulp (CUDA C++ Programming Guide, Mathematical Functions
  /// Appendix). Half of the relative error of the sum remains.
  static Factor factor_of(const Problem& problem, const std::vector<std::vector<long double>>& inputs, std::int64_t row,
                          std::int64_t chain) {
    double sum = 0;
    for (std::int64_t column = 0; column < problem.extents[1]; ++column) {
      const double h = sum_at(problem, inputs, row, column);
      sum += h * h;
    }
    const auto columns = static_cast<double>(problem.extents[1]);
    const double eps = static_cast<float>(eps_of(problem));
    const double error = static_cast<double>(chain + 2) * kRoundoff;
    const double least = sum * (1 - error) - columns * kLeast, most = sum * (1 + error) + columns * kLeast;
    if (std::isnan(sum)) return {sum, sum};
    if (least >= 0x1p128) return {0, 0};
    if (most >= 0x1.ffffffp127 || (eps == 0 && least <= 0 && sum > 0)) return {.is_unknown = true};
    const auto of_mean = [&](double mean, double slack) { return (1 + slack) / std::sqrt(mean + eps); };
    return {of_mean(most / columns * (1 + 2 * kRoundoff) + kLeast, -6 * kRoundoff),
            of_mean(std::max(0.0, least / columns * (1 - 2 * kRoundoff) - kLeast), 6 * kRoundoff)};
  }

  /// Two more products are rounded, the first of which may be subnormal.
  static reduce_reference::Expectation expected(double h, double weight, const Factor& factor) {
    using reduce_reference::Expectation;
    const double a = h * factor.lowest * weight, b = h * factor.highest * weight;
    if (std::isnan(a) || std::isnan(b)) return Expectation::exactly(std::nan(""));
    const double slack = 3 * kRoundoff * std::max(std::abs(a), std::abs(b)) + 2 * kLeast * (1 + std::abs(weight));
    return Expectation::between(std::min(a, b) - slack, std::max(a, b) + slack, DType::f32);
  }
};

/// Extents {rows, columns, 1}.
class RmsNormFamily final : public LayoutFamily<BuiltInFamily, Layout, kPruneRules>, RmsNormVerifier {
 public:
  RmsNormFamily()
      : LayoutFamily({.name = "rms_norm",
                      .space = RmsNormPolicy::space(),
                      .extent_names = {"rows", "columns"},
                      .scalar_names = {"eps"},
                      .operations = kOperations,
                      .kernels = {"rms_norm.cuh", "rms_norm_tiles.cuh", "rms_norm_shared.cuh", "rms_norm_chunks.cuh",
                                  "row_pipeline.cuh", "rms_norm_held.cuh"}}) {}

  Rows rows(const Problem& problem, int side) const override {
    return {.rows = problem.extents[0],
            .length = problem.extents[1],
            .pitch = pitch_of(problem, static_cast<std::size_t>(side))};
  }

  /// The widest packs that all rows are made of.
  std::uint32_t alignment_of_rows(const Problem& problem) const override {
    const bool has_pitch = problem.extents[0] > 1;
    const std::int64_t bytes = element_bytes(problem);
    const std::int64_t elements = aligned_elements(
        problem.alignment, bytes,
        {problem.extents[1], has_pitch ? pitch_of(problem, 0) : 0, has_pitch ? pitch_of(problem, 1) : 0});
    return static_cast<std::uint32_t>(elements * bytes);
  }

  std::int64_t bytes_moved(const Problem& problem) const override {
    const std::int64_t arrays = has_residual(problem) ? 4 : 2;
    return (arrays * problem.extents[0] + has_weight(problem)) * problem.extents[1] * element_bytes(problem);
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const std::int64_t ins = rows(problem, 0).elements(), outs = rows(problem, 1).elements();
    const bool may_replace = pitch_of(problem, 0) == pitch_of(problem, 1) || problem.extents[0] <= 1;
    std::vector<BufferSpec> specs{input("in", problem.dtype, ins)};
    if (has_residual(problem)) specs.push_back(input("residual", problem.dtype, ins));
    if (has_weight(problem)) specs.push_back(input("weight", problem.dtype, ins == 0 ? 0 : problem.extents[1]));
    specs.push_back(output("out", problem.dtype, outs, problem.alignment));
    if (has_residual(problem)) specs.push_back(output("sum", problem.dtype, outs, problem.alignment));
    for (int replaced = 0; BufferSpec & spec : specs)
      if (!spec.is_input && may_replace) spec.in_place_of = replaced++;
    return specs;
  }

  const Verifier& verifier() const override { return *this; }

 private:
  std::string fault_of(const Problem& problem) const override {
    if (problem.dtype != DType::f16 && problem.dtype != DType::bf16 && problem.dtype != DType::f32)
      return fmt::format("elements are f16, bf16 or f32, not {}", info(problem.dtype).name);
    if (problem.result.value_or(problem.dtype) != problem.dtype) return "results have the dtype of elements";
    const double eps = eps_of(problem);
    if (constexpr float kMost = std::numeric_limits<float>::max(); !(eps >= 0 && eps <= static_cast<double>(kMost)))
      return fmt::format("eps is {}, and may be from 0 to {}, the largest f32", eps, kMost);
    return choice_fault(problem, DType::f32);
  }
};

}  // namespace

const KernelFamily& rms_norm_family() { return the_family<RmsNormFamily>(); }

Problem rms_norm_problem(const RmsNormSpec& spec, bool weighted, bool adds, std::uint32_t alignment) {
  Problem problem{.family = &rms_norm_family(),
                  .operation = static_cast<std::uint8_t>((weighted ? 1 : 0) + (adds ? 2 : 0)),
                  .dtype = spec.dtype,
                  .extents = {spec.rows, spec.columns, 1},
                  .pitches = named_pitches({spec.in_pitch, spec.out_pitch}, spec.columns, spec.columns)};
  if (spec.eps != RmsNormSpec::kUsualEps) problem.scalars[0] = spec.eps;
  return static_cast<std::size_t>(spec.dtype) < kDTypes.size() ? with_alignment_of_rows(problem, alignment) : problem;
}

}  // namespace hone
