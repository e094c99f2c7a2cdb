// SoftmaxBase: what the softmax families over rows and over columns have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <hone/softmax_spec.h>

#include "kernel_templates/softmax_arguments.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"

namespace hone {

inline constexpr std::uint8_t kSoftmaxOperation = 0, kLogSoftmaxOperation = 1;
inline constexpr std::array<std::string_view, 2> kSoftmaxOperations{"softmax", "log_softmax"};

/// The memory latencies from the loads of a row to those of the next where the blocks of a cluster wait for each other:
/// 4096 rows of 2^16 f16 in clusters of 4 blocks of 256 threads take 411 µs, in blocks of 1024 that hold whole rows 370
/// (H100, CUDA 13.0, 2026-11-25).
inline constexpr double kClusterLatencies = 5;

/// The facts that follow from a problem alone. Cheap, and allocates nothing: made on the hit path.
struct SoftmaxTraits {
  DType in, out, accumulator;
  std::int64_t in_bytes, out_bytes;  ///< of an element
  std::int64_t pack_elements;        ///< of the widest packs: 16 bytes of the larger element
  bool is_log;

  explicit SoftmaxTraits(const Problem& problem);

  /// The types that a kernel is instantiated for, up to the index: "float, hone::Half, float".
  std::string type_list() const;

  /// Bytes of DRAM traffic ÷ those of each array once, where so many of all elements are read a second time.
  double traffic(std::int64_t read_twice, std::int64_t elements) const {
    const double read_share = static_cast<double>(in_bytes) / static_cast<double>(in_bytes + out_bytes);
    return 1 + read_share * static_cast<double>(read_twice) / static_cast<double>(elements);
  }

  /// A thread takes an element through its registers in 40 ns: 1 GiB of f32 by clusters of two blocks of 128
  /// threads, one an SM, takes 782 µs, where memory would take 690 (H100, CUDA 13.0, 2026-11-25).
  double thread_gbps() const { return static_cast<double>(in_bytes + out_bytes) / 40; }

  /// The size of a partial result: the largest element and a sum.
  std::size_t state_bytes() const { return 2 * info(accumulator).size_bytes; }

  /// Partial results that a workspace has room for.
  std::int64_t most_partials() const {
    return static_cast<std::int64_t>((kWorkspaceBytes - kWorkspaceHeaderBytes) / state_bytes());
  }
};

/// Verified are all of a few rows, or the beginning, middle and end of long ones; over columns some rows of the first
/// and the last columns.
class SoftmaxBase : public BuiltInFamily, Verifier {
 public:
  using BuiltInFamily::BuiltInFamily;

  std::int64_t bytes_moved(const Problem& problem) const final;
  std::string arithmetic(const Problem&) const final { return "exponentials"; }
  bool offers_reproducible(const Problem&) const final { return true; }
  std::vector<BufferSpec> buffers(const Problem& problem) const final;
  const Verifier& verifier() const final { return *this; }

  std::span<const std::string_view> input_kinds(const Problem& problem) const final;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const final;
  std::vector<Problem> verified_problems(const Problem& problem) const final;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const final;
  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const final;

  static bool is_over_columns(const Problem& problem) { return problem.family == &softmax_columns_family(); }

  Rows rows(const Problem& problem, int buffer) const final;

  /// In bytes of the larger element's packs: kMaxAlignment if the widest packs are aligned in every row. Over rows
  /// anything less counts as single elements.
  std::uint32_t alignment_of_rows(const Problem& problem) const final;

  /// The pitch of the input (0) or output (1), in elements.
  static std::int64_t pitch(const Problem& problem, int buffer);

  /// Elements of the packs that the problem's alignment allows in every row.
  static std::int64_t pack_elements(const Problem& problem);

 private:
  std::string fault_of(const Problem& problem) const final;

  /// The most additions, rescalings included, that one weight goes through.
  virtual std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const = 0;
};

/// Calls act(Acc()) with the type that weights are computed in: float or double.
template <class Act>
void with_accumulator(const SoftmaxTraits& traits, const Act& act) {
  if (traits.accumulator == DType::f64) act(double());
  else act(float());
}

/// The scale of a problem, for kernels that compute weights as Acc: float or double.
template <class Acc>
SoftmaxFactors<Acc> softmax_factors(const Problem& problem);

/// SoftmaxFactors::factor, in any accumulator.
double softmax_factor(const SoftmaxSpec& spec);

}  // namespace hone
