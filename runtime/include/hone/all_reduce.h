// tuned_all_reduce(): reduces an array whose parts are spread over the ranks of a Communicator.
#pragma once

#include <cstdint>

#include <hone/communicator.h>
#include <hone/reduce_spec.h>
#include <hone/session.h>
#include <hone/stream.h>
#include <hone/tuned_reduce.h>

namespace hone {

/// Reduces the concatenation of all ranks' arrays, in the order of ranks: each rank reduces in[0 … n) with its own
/// winner; a few bytes a rank are exchanged; and every rank combines them in the order of ranks and writes
/// info(spec.op).outputs values to *out. n may differ from rank to rank, and be 0.
///
/// All ranks get the same bits, whatever their winners and GPUs of one vendor are; and, with the same winners, the same
/// ones from run to run. With Numerics::reproducible they are those of tuned_reduce() of the concatenation, for any
/// number of ranks and any n; the numbers of elements are exchanged first (docs/collectives.md). Indices of argmin and
/// argmax count through the ranks; −1 if no rank has an element. Means and variances are weighted with the ranks'
/// numbers of elements. Otherwise results are those of tuned_reduce().
///
/// Every rank must call with the same spec (see CommunicatorOptions::checked). The first calls in a stream allocate
/// device memory, on the stream's behalf; later ones do not, and with an asynchronous communicator do not wait. Before
/// a stream is captured, call prepare_all_reduce() with LaunchContext::graph.
///
/// Returns the choice for this rank's shard; its winner is null where an empty shard needs no kernel. Throws Error:
/// invalid_argument as tuned_reduce(), for a session of another device than the communicator's, and for ranks that ask
/// for different things; device_failed where another rank failed or did not answer.
Choice tuned_all_reduce(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* in,
                        std::int64_t n, void* out, Stream stream);

/// The same for Σ a[i]·b[i]; spec.op must be dot.
Choice tuned_all_dot(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* a,
                     const void* b, std::int64_t n, void* out, Stream stream);

/// The same for each row of a matrix whose columns are spread over the ranks: every rank has `shape.rows` rows, and
/// shape.columns of their columns. Writes the result of each row as tuned_reduce_rows() does, on every rank. Means and
/// variances that ignore NaNs are supported with Numerics::reproducible only.
Choice tuned_all_reduce_rows(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* in,
                             const RowsShape& shape, void* out, Stream stream);

/// Makes sure that calls like this one will hit, without launching or talking to other ranks, and allocates what the
/// first call in a stream needs; with LaunchContext::graph, what one captured graph (or one stream of it) needs. Call
/// it on all ranks before the first exchange if one process has several GPUs: allocating memory on one while another
/// waits in an exchange may never end.
void prepare_all_reduce(Session& session, Communicator& communicator, const ReduceSpec& spec, std::int64_t n,
                        std::uint32_t alignment = kMaxAlignment, LaunchContext context = LaunchContext::stream);
void prepare_all_reduce_rows(Session& session, Communicator& communicator, const ReduceSpec& spec,
                             const RowsShape& shape, std::uint32_t alignment = kMaxAlignment,
                             LaunchContext context = LaunchContext::stream);

/// The same with dtypes from the pointers, checked at compile time:
/// tuned_all_reduce(session, communicator, hone::sum, in, n, out, stream).
template <ReduceOp kOp, class T, class Result>
Choice tuned_all_reduce(Session& session, Communicator& communicator, ReduceTag<kOp>, const T* in, std::int64_t n,
                        Result* out, Stream stream, NanPolicy nan = NanPolicy::propagate,
                        Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1, "use tuned_all_dot() for the product of two arrays");
  return tuned_all_reduce(session, communicator, detail::spec_of<kOp, T, Result>(nan, numerics), in, n, out, stream);
}
template <ReduceOp kOp, class T, class Result>
Choice tuned_all_reduce_rows(Session& session, Communicator& communicator, ReduceTag<kOp>, const T* in,
                             const RowsShape& shape, Result* out, Stream stream,
                             NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1, "a product of two arrays has no rows to reduce");
  return tuned_all_reduce_rows(session, communicator, detail::spec_of<kOp, T, Result>(nan, numerics), in, shape, out,
                               stream);
}

}  // namespace hone
