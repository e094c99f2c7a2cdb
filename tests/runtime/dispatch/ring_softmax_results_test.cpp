// Reproducible softmax of rows that pass through rings (canonical_softmax_ring.cuh), on a real device. Policies are
// launched directly. The host device has no clusters.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/runtime/support/softmax_policies.h"
#include "tests/support/share.h"

namespace hone {
namespace {

class RingSoftmaxResults : public SoftmaxPolicyTest {
 protected:
  static std::string ring_of(int cluster_blocks, int threads = 512, int smem_kib = 112) {
    const std::string scope =
        cluster_blocks == 1 ? "scope=block" : fmt::format("scope=cluster cluster_blocks={}", cluster_blocks);
    return fmt::format("{} block_threads={} staging=ring smem_kib={} min_blocks=unset", scope, threads, smem_kib);
  }

  bool has_clusters() const { return device_->facts().max_cluster_blocks >= 16; }

  /// Verifies it if it is in the share of the cases.
  void verify_case(const SoftmaxSpec& spec, const SoftmaxShape& shape, const std::string& policy, bool is_log = false) {
    if (test::in_share(cases_++)) verify_reproducible(spec, shape, policy, is_log);
  }

 private:
  std::size_t cases_ = 0;
};

/// Rows of as many chunks as a block has warps, and of fewer; rows that end in a chunk or in a pack.
TEST_F(RingSoftmaxResults, RowsAreRight) {
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(5, 4096), ring_of(1));
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(7, 5001, {5008, 5016}), ring_of(1));
  verify_reproducible({.dtype = DType::bf16}, SoftmaxShape::rows(3, 4104), ring_of(1, 256));
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(33, 24), ring_of(1, 128, 48));
  verify_reproducible({}, SoftmaxShape::rows(9, 2500), ring_of(1));
  verify_reproducible({.dtype = DType::f64}, SoftmaxShape::rows(3, 702), ring_of(1));
  verify_reproducible({.dtype = DType::f16}, SoftmaxShape::rows(6, 5120), ring_of(1), true);
  verify_reproducible({.dtype = DType::f16, .scale = -3}, SoftmaxShape::rows(5, 5000), ring_of(1));
  for (const double scale : {300.0, -300.0})  // most rows are summed again
    verify_reproducible({.dtype = DType::bf16, .scale = scale}, SoftmaxShape::rows(19, 5000), ring_of(1));
}

/// Chunks share packs. Rows end around the last element of a chunk, in the pack that it shares with the next one, and
/// results are out of step with elements.
TEST_F(RingSoftmaxResults, RowsMayBeginAnywhere) {
  for (const std::int64_t more : {-8, -7, -1, 0, 1, 7, 8, 9})
    verify_case({.dtype = DType::f16}, SoftmaxShape::rows(11, 4096 + more, {4097 + more, 4099 + more}), ring_of(1),
                more == 1);
  verify_case({.dtype = DType::f16}, SoftmaxShape::rows(9, 1, {3, 5}), ring_of(1));
  verify_case({.dtype = DType::bf16}, SoftmaxShape::rows(33, 517, {517, 519}), ring_of(1));
  verify_case({.dtype = DType::bf16}, SoftmaxShape::rows(7, 5201), ring_of(1, 256));
  verify_case({}, SoftmaxShape::rows(12, 2051, {2053, 2051}), ring_of(1), true);
  verify_case({.dtype = DType::f64}, SoftmaxShape::rows(5, 1029), ring_of(1));
  for (const double scale : {-300.0, 130.0})
    verify_case({.dtype = DType::f16, .scale = scale}, SoftmaxShape::rows(9, 5003), ring_of(1));
}

/// Blocks of a cluster have the same number of chunks, or the last one fewer, or none.
TEST_F(RingSoftmaxResults, ClustersShareRows) {
  if (!has_clusters()) GTEST_SKIP() << "there are no clusters of 16 blocks";
  bool is_log = false;
  for (const int blocks : {2, 4, 8, 16})
    for (const std::int64_t columns : {517, 4096, 5001, 20011}) {
      const int threads = std::max(128, 1024 / blocks);
      verify_case({.dtype = DType::f16}, SoftmaxShape::rows(271, columns), ring_of(blocks, threads, 224), is_log);
      verify_case({.dtype = DType::bf16, .scale = 150}, SoftmaxShape::rows(19, columns, {columns + 3, columns + 9}),
                  ring_of(blocks, threads, 224));
      is_log = !is_log;
    }
  verify_case({.dtype = DType::f16}, SoftmaxShape::rows(9, 131072), ring_of(16, 512, 112));
  verify_case({.dtype = DType::bf16}, SoftmaxShape::rows(300, 22528), ring_of(1, 1024, 224));
  verify_case({}, SoftmaxShape::rows(8, 50001), ring_of(8, 1024, 224));
}

/// Some rows are summed again, among others. In place.
TEST_F(RingSoftmaxResults, RowsMayHaveAnyWeights) {
  for (const std::int64_t pitch : {3004, 3001}) {
    constexpr std::int64_t kRows = 75, kColumns = 3001;
    std::vector<float> in = random_values<float>(static_cast<std::size_t>(kRows * pitch));
    for (std::int64_t row = 0; row < kRows; ++row) {
      const float largest = row % 3 == 1 ? 200.0f : row % 7 == 2 ? -90.0f : 0.0f;
      for (std::int64_t i = 0; i < pitch; ++i) in[static_cast<std::size_t>(row * pitch + i)] += largest;
    }
    in[static_cast<std::size_t>(5 * pitch)] = std::numeric_limits<float>::quiet_NaN();
    in[static_cast<std::size_t>(11 * pitch + 2000)] = -std::numeric_limits<float>::quiet_NaN();
    const Problem problem = softmax_problem({.numerics = Numerics::reproducible},
                                            SoftmaxShape::rows(kRows, kColumns, {pitch, pitch}));
    expect_bits_of_two_kernels(problem, in, ring_of(1), 4);
    if (has_clusters()) expect_bits_of_two_kernels(problem, in, ring_of(2), 8);
  }
}

}  // namespace
}  // namespace hone
