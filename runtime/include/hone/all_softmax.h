// tuned_all_softmax() and tuned_all_log_softmax(): the softmax of rows that are spread over ranks.
#pragma once

#include <hone/communicator.h>
#include <hone/session.h>
#include <hone/softmax_spec.h>
#include <hone/stream.h>

namespace hone {

/// Writes exp(x) ÷ Σ exp of the whole row for each element x of this rank's part of the row, in the order of `stream`.
/// Every rank has shape.extents[0] rows, and shape.extents[1] of their columns, which may differ from rank to rank and
/// be 0. `in` and `out` may be equal if elements and results have the same size and pitch, and must not overlap
/// otherwise. A row becomes NaN as a whole, on all ranks, for the same elements as in tuned_softmax().
///
/// Each rank computes the logsumexp of its part with its winner; a few bytes a row are exchanged; and the part is read
/// a second time. So the relative error of a result grows with |logsumexp of the row|: about 2^−23 times that in f32.
/// With Numerics::reproducible the bits are those of tuned_softmax(), for any number of ranks and any parts, and the
/// part is read three times; a spec.scale other than 1 is computed like that in both numerics. Streams, graphs, ranks
/// and errors are as with tuned_all_reduce_rows(); shape must be the rows of a matrix.
Choice tuned_all_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec, const void* in,
                         const SoftmaxShape& shape, void* out, Stream stream);

/// The same for the logarithm, x − log Σ exp.
Choice tuned_all_log_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec, const void* in,
                             const SoftmaxShape& shape, void* out, Stream stream);

/// As prepare_all_reduce_rows().
void prepare_all_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec,
                         const SoftmaxShape& shape, std::uint32_t alignment = kMaxAlignment,
                         LaunchContext context = LaunchContext::stream);

}  // namespace hone
