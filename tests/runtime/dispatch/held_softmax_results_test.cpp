// Softmax of rows that a grid holds in shared memory (row_held.cuh), on a real device. Policies are launched directly,
// with smaller rings than they would have: parts of many chunks and of none, more rows than a ring holds.
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/families/row_held.h"
#include "tests/runtime/support/softmax_policies.h"
#include "tests/support/share.h"

namespace hone {
namespace {

class HeldSoftmaxResults : public SoftmaxPolicyTest {
 protected:
  /// The policy of so many groups of warps of a block of 512 threads.
  static std::string held_by(int groups, int ring_kib = 32) {
    return fmt::format("scope=grid combine=held ring_kib={} row_groups={} block_threads=512 packs_per_thread=4 "
                       "min_blocks=1", ring_kib, groups);
  }

  void verify_reproducible(SoftmaxSpec spec, const SoftmaxShape& shape, bool is_log = false, int groups = 1,
                           int ring_kib = 32) {
    spec.numerics = Numerics::reproducible;
    verify(is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape), held_by(groups, ring_kib));
  }

  /// Expects what groups of warps make of rows in place to be what two kernels make of them.
  template <class T>
  void expect_same_bits(const Problem& problem, const std::vector<T>& in, int groups) {
    expect_bits_of_two_kernels(problem, in, held_by(groups), device_->facts().sm_count);
  }
};

/// States that the workspace keeps several times over, and rows that begin anywhere.
TEST_F(HeldSoftmaxResults, RowsAreRight) {
  use_sms(3);
  const std::string held = "scope=grid combine=held ring_kib=32 row_groups=", one = "1 block_threads=",
                    two = "2 block_threads=", three = "3 block_threads=", loads = " packs_per_thread=";
  verify(softmax_problem({}, SoftmaxShape::rows(5, 20000)), held + one + "512" + loads + "2 min_blocks=1");
  verify(log_softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(70, 1001, {1003, 1002})),
         held + one + "512" + loads + "4 min_blocks=1");
  verify(log_softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(71, 1001, {1003, 1002})),
         held + two + "512" + loads + "4 min_blocks=1");
  verify(log_softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(43, 2001)),
         held + three + "512" + loads + "2 min_blocks=1");
  verify(softmax_problem({}, SoftmaxShape::rows(9, 10000)), held + two + "1024" + loads + "2 min_blocks=1");
  verify(softmax_problem({.dtype = DType::f64, .result = DType::bf16}, SoftmaxShape::rows(3, 6001)),
         held + one + "512" + loads + "2 min_blocks=1");
  verify(softmax_problem({}, SoftmaxShape::rows(33, 17)), held + one + "1024" + loads + "1 min_blocks=1");
  verify(softmax_problem({}, SoftmaxShape::rows(1, 17)), held + two + "1024" + loads + "1 min_blocks=1");
}

/// Rows that are longer than all SMs hold together, by little and by far, of which blocks read the rest twice.
TEST_F(HeldSoftmaxResults, RowsThatAreHeldInPartAreRight) {
  use_sms(3);
  const std::int64_t blocks = device_->facts().sm_count;
  const auto verify_rows = [&](const SoftmaxSpec& spec, std::int64_t rows, std::int64_t kib_of_block,
                               std::int64_t more, Pitches pitches = {0, 0}) {
    const std::int64_t columns =
        blocks * kib_of_block * 1024 / static_cast<std::int64_t>(info(spec.dtype).size_bytes) + more;
    if (pitches[0] != 0) pitches = {columns + pitches[0], columns + pitches[1]};
    verify(log_softmax_problem(spec, SoftmaxShape::rows(rows, columns, pitches)),
           "scope=grid combine=held ring_kib=32 row_groups=1 block_threads=512 packs_per_thread=2 min_blocks=1");
  };
  verify_rows({}, 3, 32, 64);                            // a chunk more than they hold
  verify_rows({.dtype = DType::f16}, 3, 33, 1, {3, 2});  // rows begin anywhere
  verify_rows({}, 7, 45, 5);                             // half of a row is read twice
  verify_rows({.dtype = DType::f16}, 2, 120, 8);         // most of it
  verify_rows({.dtype = DType::f64, .result = DType::bf16}, 2, 50, 3);
  // So long that the last chunks of a part pass, not the first ones.
  verify_rows({.dtype = DType::f64}, 2, HeldRows::kMostRingsPassFirst * 32 / blocks + 2, 3, {3, 2});
}

/// Rows that are held whole and in part: runs of several chunks of the tree and of one, parts of none, rows that end in
/// a chunk or in a pack, and scales for which all rows have to be summed again.
TEST_F(HeldSoftmaxResults, ReproducibleRowsAreRight) {
  use_sms(3);
  const std::int64_t blocks = device_->facts().sm_count;
  verify_reproducible({}, SoftmaxShape::rows(5, 16384));
  verify_reproducible({}, SoftmaxShape::rows(33, 20), true);
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(31, 2304), false, 2);
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(43, 2304), false, 3);
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(4, 9001, {9008, 9008}));  // ends in a pack
  verify_reproducible({.scale = 300}, SoftmaxShape::rows(19, 3002, {3004, 3008}), false, 2);
  // All but the sums' room of a ring.
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(2, blocks * 15 * 1024 - 80));
  verify_reproducible({.scale = -300}, SoftmaxShape::rows(2, blocks * 10000));  // held in part
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(2, blocks * 48 * 1024));  // most is read twice
  const std::int64_t few = blocks * 6000, more = blocks * 20000;
  verify_reproducible({.dtype = DType::f64, .result = DType::f32},
                      SoftmaxShape::rows(2, few + 1, {few + 4, few + 8}));
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(2, more + 9, {more + 16, more + 16}), true);
  for (const double scale : {-300.0, 150.0, 130.0})  // most, some or few of the elements are low
    verify_reproducible({.dtype = DType::f16, .scale = scale}, SoftmaxShape::rows(5, few));
  // More States of a row than a warp loads at once: warps combine them together.
  use_sms(24);
  const std::int64_t sms = device_->facts().sm_count, columns = sms * (is_cuda() ? 17 : 13) * 1024;
  const int ring_kib = is_cuda() ? 216 : 32;
  ASSERT_FALSE(HeldRows::one_warp_combines(2 * columns / 8, ring_kib, 1));
  ASSERT_GT(HeldParts::of_tree(columns / 8, sms, 8, 4, true, false).states, 160);
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(3, columns), false, 1, ring_kib);
}

/// Parts that are not whole runs of chunks of the tree, so that neighbours share some, in every way: rows that end with
/// the last part, in a run of it, and parts before; and that are summed again.
TEST_F(HeldSoftmaxResults, ReproducibleRowsMayShareRuns) {
  use_sms(40);
  const std::int64_t sms = device_->facts().sm_count;
  std::size_t cases = 0;
  const auto compare = [&]<class T>(T, DType dtype, std::int64_t chunks_of_part, std::int64_t less,
                                    double scale = 1) {
    if (!test::in_share(cases++)) return;
    constexpr std::int64_t kPack = 16 / sizeof(T);
    const std::int64_t runs = sms * chunks_of_part / 64, pitch = runs * 64 * HeldParts::kTreeChunkPacks * kPack;
    const std::int64_t columns = pitch - less;
    ASSERT_TRUE(HeldRows::one_warp_combines(columns / kPack, 32, 1)) << columns;
    ASSERT_GT(HeldParts::of_tree(divide_up(columns, kPack), sms, 8, 4, true, true).pieces, 0) << columns;
    const SoftmaxSpec spec{.dtype = dtype, .scale = scale, .numerics = Numerics::reproducible};
    expect_same_bits(softmax_problem(spec, SoftmaxShape::rows(2, columns, {pitch, pitch})),
                     random_values<T>(static_cast<std::size_t>(2 * pitch)), 1);
  };
  compare(double{}, DType::f64, 72, 0);
  compare(double{}, DType::f64, 70, 3);
  compare(float{}, DType::f32, 67, 70);
  compare(float{}, DType::f32, 72, 513, -300);
}

/// Chunks of the tree share packs in rows that begin anywhere. Rows end around the last element of a chunk, in the pack
/// that it shares with the next one; results are out of step with elements; rows are held whole and in part, by several
/// groups of warps, and summed again.
TEST_F(HeldSoftmaxResults, ReproducibleRowsMayBeginAnywhere) {
  use_sms(3);
  const std::int64_t blocks = device_->facts().sm_count;
  std::size_t cases = 0;
  const auto verify_case = [&](const SoftmaxSpec& spec, const SoftmaxShape& shape, bool is_log = false,
                               int groups = 1) {
    if (test::in_share(cases++)) verify_reproducible(spec, shape, is_log, groups);
  };
  for (const std::int64_t more : {-8, -7, -1, 0, 1, 7, 8, 9})
    verify_case({.dtype = DType::f16}, SoftmaxShape::rows(11, 8192 + more, {8193 + more, 8195 + more}), more == 1);
  for (const std::int64_t more : {-3, 0, 1})
    verify_case({.dtype = DType::bf16},
                SoftmaxShape::rows(9, blocks * 6144 + more, {blocks * 6144 + 5, blocks * 6144 + 7}));
  verify_case({.dtype = DType::f16}, SoftmaxShape::rows(43, 2303), false, 2);
  verify_case({}, SoftmaxShape::rows(43, 1537, {1538, 1539}), true, 3);
  for (const std::int64_t columns : {1, 2, 3})  // some are in no whole pack
    verify_case({}, SoftmaxShape::rows(9, columns, {columns, columns + 1}), columns == 2);
  verify_case({.dtype = DType::f16}, SoftmaxShape::rows(5, 1, {3, 5}));
  verify_case({.dtype = DType::bf16}, SoftmaxShape::rows(33, 517, {517, 519}));
  verify_case({.scale = 300}, SoftmaxShape::rows(19, 3001), false, 2);
  verify_case({.dtype = DType::f64, .result = DType::f32}, SoftmaxShape::rows(3, blocks * 3001 + 2));
  verify_case({.dtype = DType::f16}, SoftmaxShape::rows(4, blocks * 14 * 1024 - 5));
  verify_case({.scale = -300}, SoftmaxShape::rows(2, blocks * 10000 + 1));  // held in part
  verify_case({.dtype = DType::f16}, SoftmaxShape::rows(3, blocks * 20000 + 9), true);
  for (const double scale : {-300.0, 130.0})
    verify_case({.dtype = DType::f16, .scale = scale}, SoftmaxShape::rows(5, blocks * 6000 + 3));
}

/// Some rows have to be summed again, among others, and are written last; more of them than a word has bits. In place.
TEST_F(HeldSoftmaxResults, ReproducibleRowsMayHaveAnyWeights) {
  for (const std::int64_t pitch : {3004, 3001}) {
    constexpr std::int64_t kRows = 75, kColumns = 3001;
    const SoftmaxSpec spec{.numerics = Numerics::reproducible};
    std::vector<float> in = random_values<float>(static_cast<std::size_t>(kRows * pitch));
    for (std::int64_t row = 0; row < kRows; ++row) {
      const float largest = row % 3 == 1 ? 200.0f : row % 7 == 2 ? -90.0f : 0.0f;
      for (std::int64_t i = 0; i < pitch; ++i) in[static_cast<std::size_t>(row * pitch + i)] += largest;
    }
    in[static_cast<std::size_t>(5 * pitch)] = std::numeric_limits<float>::quiet_NaN();
    expect_same_bits(softmax_problem(spec, SoftmaxShape::rows(kRows, kColumns, {pitch, pitch})), in, 2);
  }
}

/// Rows of zeros but for an element that is so low that its power is clamped, around the first element of each chunk of
/// the tree: the block that writes it may not be the one that sums it.
TEST_F(HeldSoftmaxResults, ReproducibleRowsMayHaveOneLowElement) {
  use_sms(3);
  constexpr std::int64_t kChunk = 1024, kAround = 9, kColumns = 5 * kChunk + 11;
  constexpr std::int64_t kRows = 5 * 2 * kAround;
  const std::uint16_t minus_infinity = 0xfc00, minus_250 = 0xdbd0;
  for (const std::int64_t pitch : {kColumns, kColumns + 5}) {  // of all alignments, and of one
    std::vector<std::uint16_t> in(static_cast<std::size_t>(kRows * pitch));
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t at = (row / (2 * kAround) + 1) * kChunk + row % (2 * kAround) - kAround;
      in[static_cast<std::size_t>(row * pitch + at)] = row % 4 < 2 ? minus_infinity : minus_250;
    }
    const SoftmaxSpec spec{.dtype = DType::f16, .numerics = Numerics::reproducible};
    expect_same_bits(softmax_problem(spec, SoftmaxShape::rows(kRows, kColumns, {pitch, pitch})), in, 1);
  }
}

}  // namespace
}  // namespace hone
