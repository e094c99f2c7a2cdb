#include <hone/all_reduce.h>

#include "runtime/dispatch/all_reduce_call.h"

namespace hone {

Choice tuned_all_reduce(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* in,
                        std::int64_t n, void* out, Stream stream) {
  const RowsShape shape{.rows = 1, .columns = n};
  return AllReduceCall("tuned_all_reduce", session, communicator, spec, shape, false)
      .run({.in = in, .out = out}, stream);
}

Choice tuned_all_dot(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* a,
                     const void* b, std::int64_t n, void* out, Stream stream) {
  const RowsShape shape{.rows = 1, .columns = n};
  return AllReduceCall("tuned_all_dot", session, communicator, spec, shape, false)
      .run({.in = a, .other = b, .out = out, .is_pair = true}, stream);
}

Choice tuned_all_reduce_rows(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* in,
                             const RowsShape& shape, void* out, Stream stream) {
  return AllReduceCall("tuned_all_reduce_rows", session, communicator, spec, shape, true)
      .run({.in = in, .out = out}, stream);
}

void prepare_all_reduce(Session& session, Communicator& communicator, const ReduceSpec& spec, std::int64_t n,
                        std::uint32_t alignment, LaunchContext context) {
  const RowsShape shape{.rows = 1, .columns = n};
  AllReduceCall("prepare_all_reduce", session, communicator, spec, shape, false).prepare(alignment, context);
}

void prepare_all_reduce_rows(Session& session, Communicator& communicator, const ReduceSpec& spec,
                             const RowsShape& shape, std::uint32_t alignment, LaunchContext context) {
  AllReduceCall("prepare_all_reduce_rows", session, communicator, spec, shape, true).prepare(alignment, context);
}

}  // namespace hone
