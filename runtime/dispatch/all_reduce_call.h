// AllReduceCall: one call over ranks, on one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hone/all_reduce.h>
#include <hone/softmax_spec.h>

#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/combine_ranks/shard_layout.h"

namespace hone {

/// Each rank reduces its shard to a partial, partials are exchanged, and each rank combines them. Where results are to
/// have the bits of the canonical tree, partials are its nodes: which ones depends on the number of elements of the
/// ranks ahead, so these are exchanged first.
///
/// A softmax is a reduction whose results nobody gets: elements are normalised by them. Its canonical tree is that of
/// weights relative to the largest element of a row, which is reduced ahead.
class AllReduceCall {
 public:
  /// Arrays are null where a call is only prepared.
  struct Arrays {
    const void* in = nullptr;
    const void* other = nullptr;  ///< of dot
    void* out = nullptr;
    bool is_pair = false;
  };

  /// The second half of a softmax, which divides by the sums.
  struct Softmax {
    SoftmaxSpec spec;
    Problem normalization;
    std::string refusal = {};  ///< why the call is none that is known; "": it is

    /// Another scale than 1 is that of weights, which only the canonical tree has kernels for.
    bool is_canonical() const { return spec.numerics == Numerics::reproducible || spec.scale != 1; }
  };

  /// `shape` of one row: all elements are reduced to one. Arguments must outlive the call. `spec` of a softmax is the
  /// logsumexp of its rows.
  AllReduceCall(std::string_view function, Session& session, Communicator& communicator, const ReduceSpec& spec,
                const RowsShape& shape, bool is_rows, const Softmax* softmax = nullptr);

  Choice run(const Arrays& arrays, Stream stream);
  void prepare(std::uint32_t alignment, LaunchContext context);

 private:
  [[noreturn]] void refuse(std::string_view why) const;
  std::string_view operation() const;
  std::string text() const;
  bool counts_numbers() const;
  bool has_local_kernel() const;
  std::uint32_t alignment_of(const Arrays& arrays) const;

  void check_spec();
  void check(const Arrays& arrays);
  void check_softmax(const void* out) const;
  void check_memory_of(const Arrays& arrays, bool has_elements) const;
  void agree_or_throw(const Arrays& arrays);

  /// Places in the memory of the communicator, in bytes; set by place().
  struct Places {
    std::int64_t counts = 0;                      ///< of the canonical tree, one a rank
    std::int64_t found = 0;                       ///< indices that this rank found
    std::int64_t extremes = 0, origins = 0;       ///< of a canonical softmax: blocks, and a row's results
    std::int64_t sums = 0;                        ///< of a softmax: a row's results
    std::int64_t all = 0;
  };
  void place();

  /// All that the call launches.
  std::vector<Problem> problems(std::uint32_t alignment) const;
  Problem combine_problem() const;
  Problem shard_problem(std::uint32_t alignment) const;
  ReduceSpec extremes_spec() const;

  Choice reduce_partials(const Arrays& arrays, std::byte* memory, void* result, Stream stream);
  Choice reduce_shard(const Arrays& arrays, std::byte* memory, Stream stream);
  Choice reduce_tree(const Arrays& arrays, std::byte* memory, void* result, Stream stream);
  void reduce_extremes(const void* in, std::byte* memory, Stream stream);
  void all_gather(void* blocks, std::int64_t block_bytes, Stream stream);

  std::string_view function_;
  Session& session_;
  Communicator& communicator_;
  const ReduceSpec& spec_;
  const RowsShape& shape_;
  bool is_rows_;
  const Softmax* softmax_;
  bool is_tree_;
  ShardBounds bounds_;
  PartialLayout layout_;
  Places places_;
  std::int64_t block_bytes_ = 0;
};

}  // namespace hone
