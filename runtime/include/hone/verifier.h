// Verifier: checks the results of a kernel family.
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

/// A range of contiguous elements of an array.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const ElementRange&) const = default;
};

/// The contents of some arrays of a call.
using ArrayBytes = std::span<const std::vector<std::byte>>;

/// Checks the results of a family's kernels. KernelFamily::verifier() returns it. The smallest one overrides verify()
/// alone. A family whose results only a kernel can compute overrides the methods of the reference kernel instead.
/// Implementations are immutable: any thread may call any method at any time.
class Verifier {
 public:
  virtual ~Verifier() = default;

  /// The names of the kinds of input that results are verified on. The first kind is also the input of measurements;
  /// the others are difficult ones, such as NaN, infinities and cancellation. By default "uniform" only.
  virtual std::span<const std::string_view> input_kinds(const Problem& problem) const;

  /// One period of the contents of input `buffer`, which is repeated to fill the buffer, so that gigabytes of input
  /// cost no more than a pattern. A length that is no multiple of a tile makes displaced reads visible. Contents that
  /// cannot repeat, such as ascending offsets, are as long as the buffer. By default 65521 random elements of the
  /// buffer's dtype, or as many as the buffer has: floats of [−1, 1), integers of all values.
  virtual std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const;

  /// The problems that a winner of `problem` is verified on, the largest first. Problems that the family refuses are
  /// skipped. By default `problem` itself, and the same with a first extent that is smaller by 1.
  virtual std::vector<Problem> verified_problems(const Problem& problem) const;

  /// The parts of output `buffer` that are verified, in ascending order. By default all of it. Override it if copying
  /// and checking gigabytes would take longer than tuning.
  virtual std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const;

  /// Compares outputs with a reference in higher precision, which is computed from the patterns of all inputs. Returns
  /// "" if they are right, else a message with the expected value, the value found, and the allowed difference.
  /// `outputs` has the verified_parts() of each output, concatenated. By default throws Error(unsupported).
  virtual std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                             ArrayBytes outputs) const;

  /// True if results are compared with those of a reference kernel on the same buffers: a plain kernel that shares as
  /// little as possible with the tuned ones. Then compare() is called instead of verify(). By default false.
  virtual bool has_reference_kernel() const { return false; }

  /// The unit of the reference kernel. Unit::headers is filled in from KernelFamily::sources().
  virtual Unit reference_unit(const Problem& problem) const;

  /// Appends the launches of the reference kernel to `launches`. `order`, below reference_orders(), is the order in
  /// which it combines elements. Candidates are compared with order 0.
  virtual void encode_reference(const Problem& problem, int order, std::span<void* const> buffers,
                                LaunchList& launches) const;

  /// Compares outputs with those of the reference kernel, and returns what verify() returns.
  virtual std::string compare(const Problem& problem, const Candidate& candidate, ArrayBytes expected,
                              ArrayBytes outputs) const;

  /// The number of orders in which the reference kernel can combine elements. If the result of a user's operation
  /// depends on the order, no candidate is right. With more than one order, a tuning first runs the reference kernel in
  /// each order on order_problems(), and throws Error(invalid_argument) with the message of compare_orders() if at
  /// least two problems differ; a single one may differ by rounding.
  virtual int reference_orders() const { return 1; }

  /// The problems on which orders are compared, the largest first.
  virtual std::vector<Problem> order_problems(const Problem& problem) const;

  /// Says which law of a user's operation does not hold, though all orders agree: with an example, and without the
  /// device, since what the operation does to awkward elements may end a context. Asked for once all orders agree, before
  /// a winner is stored. By default "".
  virtual std::string law_fault(const Problem&) const { return ""; }

  /// Compares the outputs of two orders. Returns "" if they agree, else a message.
  virtual std::string compare_orders(const Problem& problem, ArrayBytes first, ArrayBytes other) const;
};

}  // namespace hone
