#include <hone/tuned_reduce.h>

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include <hone/custom_reduce.h>
#include <hone/error.h>
#include <hone/fused_reduce.h>

#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

/// A call as messages name it: "sum f32" of n elements.
struct ReduceCall {
  std::string_view function, what, dtype;
  std::int64_t n;

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}({} {}, n = {}): {}", function, what, dtype, n, why));
  }
};

ReduceCall call_of(const ReduceSpec& spec, std::int64_t n) {
  return {info(spec.op).inputs == 2 ? "tuned_dot" : "tuned_reduce", name(spec.op), info(spec.dtype).name, n};
}

/// What costs nothing to check on every call; dtypes that do not go together are refused on a miss, and never become a
/// hit.
void check_aligned(const ReduceCall& call, std::string_view name, const void* pointer, DType dtype) {
  if (const std::string why = misalignment(name, pointer, dtype); !why.empty()) call.refuse(why);
}

void check_input(const ReduceCall& call, std::string_view name, const void* in, DType dtype) {
  if (!in && call.n > 0) call.refuse(fmt::format("'{}' is null; pass device memory", name));
  check_aligned(call, name, in, dtype);
}

void check_size(const ReduceCall& call, bool needs_elements) {
  if (call.n < 0) call.refuse("a size cannot be negative");
  if (call.n == 0 && needs_elements) call.refuse("an empty array has none");
}

void check_output(const ReduceCall& call, const void* out, DType dtype, int values) {
  if (!out) call.refuse(fmt::format("'out' is null; pass device memory for {} {}", values, info(dtype).name));
  check_aligned(call, "out", out, dtype);
}

void check_output(const ReduceCall& call, const ReduceSpec& spec, const void* out) {
  check_size(call, info(spec.op).needs_elements);
  check_output(call, out, spec.result_dtype(), info(spec.op).outputs);
}

}  // namespace

Choice tuned_reduce(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out,
                    Stream stream) {
  require_known("tuned_reduce", spec);
  const ReduceCall call = call_of(spec, n);
  if (info(spec.op).inputs != 1) call.refuse("takes two arrays; call tuned_dot()");
  check_output(call, spec, out);
  check_input(call, "in", in, spec.dtype);
  // Without elements nothing is read, and any address will do.
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(in), out};
  return session.launch(reduce_problem(spec, n, alignment_of(in)), buffers, stream);
}

Choice tuned_dot(Session& session, const ReduceSpec& spec, const void* a, const void* b, std::int64_t n, void* out,
                 Stream stream) {
  require_known("tuned_reduce", spec);
  const ReduceCall call = call_of(spec, n);
  if (spec.op != ReduceOp::dot) call.refuse("takes one array; call tuned_reduce()");
  check_output(call, spec, out);
  check_input(call, "a", a, spec.dtype);
  check_input(call, "b", b, spec.dtype);
  const auto apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(a), n == 0 ? out : const_cast<void*>(b), out};
  return session.launch(reduce_problem(spec, n, 1u << std::countr_zero(apart | kMaxAlignment)), buffers, stream);
}

Choice tuned_reduce_and_wait(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out_host,
                             Stream stream) {
  require_known("tuned_reduce", spec);
  if (!out_host) call_of(spec, n).refuse("'out_host' is null; pass host memory");
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
  require_known("tuned_reduce", dtype);
  const Problem problem = reduction.problem(dtype, n, alignment_of(in), nan);
  const std::span<const ReduceOp> ops = reduction.ops();
  const ReduceCall call{"tuned_reduce", problem.family->operations()[0], info(dtype).name, n};
  if (outs.size() != ops.size())
    call.refuse(fmt::format("makes {} results, {} pointers were passed", ops.size(), outs.size()));
  check_size(call, std::any_of(ops.begin(), ops.end(), [](ReduceOp op) { return info(op).needs_elements; }));
  check_input(call, "in", in, dtype);
  std::array<void*, FusedReduction::kMost + 1> buffers;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    check_output(call, outs[i], reduce_result_dtype(ops[i], dtype), info(ops[i]).outputs);
    buffers[i + 1] = outs[i];
  }
  buffers[0] = n == 0 ? outs[0] : const_cast<void*>(in);
  return session.launch(problem, std::span(buffers).first(ops.size() + 1), stream);
}

Choice tuned_reduce(Session& session, const CustomReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    void* out, Stream stream) {
  require_known("tuned_reduce", dtype);
  const Problem problem = reduction.problem(dtype, n, alignment_of(in));
  const ReduceCall call{"tuned_reduce", problem.family->operations()[0], info(dtype).name, n};
  check_size(call, false);
  check_output(call, out, reduction.result_dtype(), 1);
  check_input(call, "in", in, dtype);
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

void detail::require_result_dtype(const CustomReduction& reduction, DType out) {
  if (out != reduction.result_dtype())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tuned_reduce: 'out' points to {}, the reduction gives {}", info(out).name,
                            info(reduction.result_dtype()).name));
}

}  // namespace hone
