#include <hone/tuned_reduce.h>

#include <array>
#include <bit>

#include <fmt/format.h>

#include <hone/custom_reduce.h>
#include <hone/fused_reduce.h>

#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

/// Whatever else the family refuses is refused on a miss, and never becomes a hit.
void check_size(const Call& call) {
  if (call.problem.extents[0] <= 0) call.check_problem();
}

/// An input is there, and `out` has no byte of it.
void check_input(const Call& call, std::string_view name, const void* in, const ArrayRows& out) {
  const std::int64_t n = call.problem.extents[0];
  call.check_array(name, in, call.problem.dtype, n > 0);
  call.check_apart(name, side_by_side(in, n, call.problem.dtype), "out", out);
}

}  // namespace

Choice tuned_reduce(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out,
                    Stream stream) {
  require_known("tuned_reduce", spec);
  const Problem problem = reduce_problem(spec, n, alignment_of(in));
  const Call call{"tuned_reduce", problem};
  if (info(spec.op).inputs != 1) call.refuse("takes two arrays; call tuned_dot()");
  check_size(call);
  call.check_array("out", out, spec.result_dtype());
  check_input(call, "in", in, side_by_side(out, info(spec.op).outputs, spec.result_dtype()));
  // Without elements nothing is read, and any address will do.
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

Choice tuned_dot(Session& session, const ReduceSpec& spec, const void* a, const void* b, std::int64_t n, void* out,
                 Stream stream) {
  require_known("tuned_dot", spec);
  const auto apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  const Problem problem = reduce_problem(spec, n, 1u << std::countr_zero(apart | kMaxAlignment));
  const Call call{"tuned_dot", problem};
  if (spec.op != ReduceOp::dot) call.refuse("takes one array; call tuned_reduce()");
  check_size(call);
  call.check_array("out", out, spec.result_dtype());
  const ArrayRows result = side_by_side(out, 1, spec.result_dtype());
  check_input(call, "a", a, result);
  check_input(call, "b", b, result);
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(a), n == 0 ? out : const_cast<void*>(b), out};
  return session.launch(problem, buffers, stream);
}

Choice tuned_reduce_and_wait(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out_host,
                             Stream stream) {
  require_known("tuned_reduce", spec);
  if (!out_host) refuse_call("tuned_reduce_and_wait", "'out_host' is null; pass host memory");
  Device& device = *session.device();
  const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
  const DeviceBuffer out(session.device(), bytes);
  const Choice choice = tuned_reduce(session, spec, in, n, out.data(), stream);
  device.copy_to_host(out_host, out.data(), bytes, stream);
  device.synchronize(stream);
  return choice;
}

Choice tuned_reduce(Session& session, const FusedReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    std::span<void* const> outs, Stream stream, NanPolicy nan) {
  require_known("tuned_reduce", {dtype});
  const Problem problem = reduction.problem(dtype, n, alignment_of(in), nan);
  const std::span<const ReduceOp> ops = reduction.ops();
  const Call call{"tuned_reduce", problem};
  if (outs.size() != ops.size())
    call.refuse(fmt::format("makes {} results, {} pointers were passed", ops.size(), outs.size()));
  check_size(call);
  std::array<void*, FusedReduction::kMost + 1> buffers;
  std::array<ArrayRows, FusedReduction::kMost> results;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const DType result = reduce_result_dtype(ops[i], dtype);
    call.check_array(name(ops[i]), outs[i], result);
    results[i] = side_by_side(outs[i], info(ops[i]).outputs, result);
    check_input(call, "in", in, results[i]);
    for (std::size_t other = 0; other < i; ++other)
      call.check_apart(name(ops[other]), results[other], name(ops[i]), results[i]);
    buffers[i + 1] = outs[i];
  }
  buffers[0] = n == 0 ? outs[0] : const_cast<void*>(in);
  return session.launch(problem, std::span(buffers).first(ops.size() + 1), stream);
}

Choice tuned_reduce(Session& session, const CustomReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    void* out, Stream stream) {
  require_known("tuned_reduce", {dtype});
  const Problem problem = reduction.problem(dtype, n, alignment_of(in));
  const Call call{"tuned_reduce", problem};
  check_size(call);
  call.check_array("out", out, reduction.result_dtype());
  check_input(call, "in", in, side_by_side(out, 1, reduction.result_dtype()));
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

void detail::require_result_dtype(const CustomReduction& reduction, DType out) {
  if (out != reduction.result_dtype())
    refuse_call("tuned_reduce", fmt::format("'out' points to {}, the reduction gives {}", info(out).name,
                                            info(reduction.result_dtype()).name));
}

}  // namespace hone
