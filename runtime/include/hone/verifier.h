// Verifier: how the results of a kernel family are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/kernel.h>
#include <hone/problem.h>

namespace hone {

/// A run of neighbouring elements of an array.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const ElementRange&) const = default;
};

/// Decides whether the results of a family's kernels are right. A family returns its own from KernelFamily::verifier().
/// The smallest overrides verify() alone; a family that only a kernel can check overrides the methods of the reference
/// kernel instead. Implementations are immutable: every method may be called from any thread at any time.
class Verifier {
 public:
  virtual ~Verifier() = default;

  /// Names of the kinds of input that results are verified on. The first is the one that is measured; further ones are
  /// awkward (NaN, infinities, cancellation). By default "uniform" alone.
  virtual std::span<const std::string_view> input_kinds(const Problem& problem) const;

  /// One period of the contents of input number `buffer`. The buffer is filled with it over and over, so that gigabytes
  /// of input cost no more than a pattern; a length that is no multiple of any tile makes displaced reads visible.
  /// Contents that cannot repeat, such as ascending offsets, are as long as the buffer. By default 65521 random
  /// elements of the buffer's dtype, or fewer where the buffer has fewer: floats of [−1, 1), integers of all values.
  virtual std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const;

  /// The problems that a winner of `problem` is verified on, the largest first; those that the family refuses are left
  /// out. By default `problem` itself and one with an element less along the first extent.
  virtual std::vector<Problem> verified_problems(const Problem& problem) const;

  /// The parts of output number `buffer` that are verified, in ascending order. By default all of it; override it where
  /// copying and checking gigabytes would take longer than tuning.
  virtual std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const;

  /// Compares outputs with a reference in higher precision, computed from the patterns of all inputs. Returns "" when
  /// they are right, else a message with the expected value, the found one and the allowed difference. `outputs` hold
  /// the verified_parts() of each output, one after the other. By default throws Error(unsupported).
  virtual std::string verify(const Problem& problem, const Candidate& candidate,
                             std::span<const std::vector<std::byte>> patterns,
                             std::span<const std::vector<std::byte>> outputs) const;

  /// Whether results are compared with those of a reference kernel: a plain one, as unlike the tuned ones as can be,
  /// that runs on the same buffers. Then compare() is called instead of verify(). By default false.
  virtual bool has_reference_kernel() const { return false; }

  /// The source of the reference kernel; headers are filled in from KernelFamily::sources().
  virtual Unit reference_unit(const Problem& problem) const;

  /// The launches of the reference kernel. `order` is the order, below reference_orders(), in which it combines
  /// elements; candidates are compared with order 0.
  virtual void encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                                LaunchList& launches) const;

  /// Compares outputs with those of the reference kernel, as verify() does.
  virtual std::string compare(const Problem& problem, const Candidate& candidate,
                              std::span<const std::vector<std::byte>> expected,
                              std::span<const std::vector<std::byte>> outputs) const;

  /// The orders in which the reference kernel can combine elements. An operation that the caller wrote may depend on
  /// the order, and then no candidate is right. With more than one order, a tuning first runs the reference kernel in
  /// each on order_problems() and throws Error(invalid_argument) with the message of compare_orders() where at least
  /// two problems differ: one may by rounding.
  virtual int reference_orders() const { return 1; }

  /// The problems that orders are compared on, the largest first.
  virtual std::vector<Problem> order_problems(const Problem& problem) const;

  /// Compares the outputs of two orders: "" when they agree.
  virtual std::string compare_orders(const Problem& problem, std::span<const std::vector<std::byte>> first,
                                     std::span<const std::vector<std::byte>> other) const;
};

}  // namespace hone
