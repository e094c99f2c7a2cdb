// Reproducible softmax gives no weight to elements that are not there, whatever lanes, packs and words a policy has for
// them: not even that of −∞, the least one. It would be lost beside any other, but for sums that are ties one after the other.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/support/softmax_policies.h"

namespace hone {
namespace {

class AbsentSoftmaxResults : public SoftmaxPolicyTest {
 protected:
  /// Expects the largest result of a row to be 1. The largest element is added to a node that is half of its last digit,
  /// that node was added to one that was half of its own, and so on: each sum is a tie, and stays even. `absent` is a
  /// place behind the row: an element there would be added first, and decide them all.
  void expect_ties_to_even(std::int64_t columns, std::int64_t pitch, std::int64_t absent, const std::string& policy) {
    constexpr double kScale = 0x1.19d24ap-12, kTimes = 2579;  // the product is ln 2: weights are powers of two
    std::vector<float> row(static_cast<std::size_t>(pitch), -std::numeric_limits<float>::infinity());
    std::size_t largest = 0;
    int exponent = -149;
    std::int64_t node = absent;
    for (auto stride = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns))) / 2; stride > 0;
         stride /= 2) {
      const std::int64_t partner = node < stride ? node + stride : node - stride;
      node = std::min(node, partner);
      if (partner >= columns || exponent >= 0) continue;
      largest = static_cast<std::size_t>(partner);
      row[largest] = static_cast<float>(kTimes * exponent);
      exponent += 24;
    }
    const Problem problem = softmax_problem({.scale = kScale, .numerics = Numerics::reproducible},
                                            SoftmaxShape::rows(1, columns, {pitch, pitch}));
    const std::vector<std::byte> bytes = results_of(problem, row, policy, 2);
    float result = 0;
    std::memcpy(&result, bytes.data() + largest * sizeof(float), sizeof result);
    EXPECT_EQ(result, 1.0f) << absent << " is absent from " << to_string(problem) << " by " << policy;
  }
};

TEST_F(AbsentSoftmaxResults, HaveNoWeight) {
  constexpr std::int64_t kColumns = 129;
  const std::vector<std::string> of_any{
      "scope=grid combine=second_kernel block_threads=128 packs_per_thread=4 min_blocks=unset",
      "scope=warp threads_per_row=16 block_threads=128 staging=direct packs_per_thread=4 min_blocks=unset",
      "scope=warp threads_per_row=32 block_threads=128 staging=direct packs_per_thread=2 min_blocks=unset",
      "scope=block block_threads=128 staging=direct packs_per_thread=4 min_blocks=unset",
      "scope=block block_threads=128 staging=shared smem_kib=48 min_blocks=unset",
      "scope=block block_threads=128 staging=ring smem_kib=48 min_blocks=unset"};
  std::vector<std::string> of_misaligned = of_any;
  for (const char* lanes : {"8", "16"})
    of_misaligned.push_back(std::string("scope=warp threads_per_row=") + lanes +
                            " block_threads=128 staging=shared min_blocks=unset");
  for (const std::int64_t pitch : {132, 129})
    for (const std::string& policy : pitch % 4 == 0 ? of_any : of_misaligned)
      for (const std::int64_t absent : {129, 130, 137, 172, 255}) expect_ties_to_even(kColumns, pitch, absent, policy);
}

}  // namespace
}  // namespace hone
