#include <hone/tuned_reduce.h>

#include <bit>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {
namespace {

[[noreturn]] void refuse(const ReduceSpec& spec, std::int64_t n, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}({} {}, n = {}): {}",
                                                       info(spec.op).inputs == 2 ? "tuned_dot" : "tuned_reduce",
                                                       name(spec.op), info(spec.dtype).name, n, why));
}

/// Values that were cast from elsewhere may name nothing.
void require_known(const ReduceSpec& spec) {
  const auto known = [](DType dtype) { return static_cast<std::size_t>(dtype) < kDTypes.size(); };
  if (static_cast<std::size_t>(spec.op) >= kReduceOps.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tuned_reduce: there is no operation {}", static_cast<int>(spec.op)));
  for (DType dtype : {spec.dtype, spec.accumulator.value_or(spec.dtype), spec.result.value_or(spec.dtype)})
    if (!known(dtype))
      throw Error(ErrorCode::invalid_argument, fmt::format("tuned_reduce: there is no dtype {}", static_cast<int>(dtype)));
}

bool is_aligned(const void* pointer, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(pointer) % info(dtype).size_bytes == 0;
}

/// What costs nothing to check on every call; dtypes that do not go together are refused on a miss, and never become a
/// hit.
void check_input(const ReduceSpec& spec, std::string_view name, const void* in, std::int64_t n) {
  if (!in && n > 0) refuse(spec, n, fmt::format("'{}' is null; pass device memory", name));
  if (!is_aligned(in, spec.dtype))
    refuse(spec, n, fmt::format("'{}' at {} is not aligned to its {}-byte elements", name, in, info(spec.dtype).size_bytes));
}

void check_output(const ReduceSpec& spec, const void* out, std::int64_t n) {
  const DTypeInfo& result = info(spec.result_dtype());
  if (n < 0) refuse(spec, n, "a size cannot be negative");
  if (n == 0 && info(spec.op).needs_elements) refuse(spec, n, "an empty array has none");
  if (!out)
    refuse(spec, n, fmt::format("'out' is null; pass device memory for {} {}", info(spec.op).outputs, result.name));
  if (!is_aligned(out, result.dtype))
    refuse(spec, n, fmt::format("'out' at {} is not aligned to its {}-byte elements", out, result.size_bytes));
}

}  // namespace

Choice tuned_reduce(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out,
                    Stream stream) {
  require_known(spec);
  if (info(spec.op).inputs != 1) refuse(spec, n, "takes two arrays; call tuned_dot()");
  check_output(spec, out, n);
  check_input(spec, "in", in, n);
  // Without elements nothing is read, and any address will do.
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(in), out};
  return session.launch(reduce_problem(spec, n, alignment_of(in)), buffers, stream);
}

Choice tuned_dot(Session& session, const ReduceSpec& spec, const void* a, const void* b, std::int64_t n, void* out,
                 Stream stream) {
  require_known(spec);
  if (spec.op != ReduceOp::dot) refuse(spec, n, "takes one array; call tuned_reduce()");
  check_output(spec, out, n);
  check_input(spec, "a", a, n);
  check_input(spec, "b", b, n);
  const auto apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(a), n == 0 ? out : const_cast<void*>(b), out};
  return session.launch(reduce_problem(spec, n, 1u << std::countr_zero(apart | kMaxAlignment)), buffers, stream);
}

Choice tuned_reduce_and_wait(Session& session, const ReduceSpec& spec, const void* in, std::int64_t n, void* out_host,
                             Stream stream) {
  require_known(spec);
  if (!out_host) refuse(spec, n, "'out_host' is null; pass host memory");
  Device& device = *session.device();
  const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
  const DeviceBuffer out(session.device(), bytes);
  const Choice choice = tuned_reduce(session, spec, in, n, out.data(), stream);
  device.copy_to_host(out_host, out.data(), bytes, stream);
  device.synchronize(stream);
  return choice;
}

}  // namespace hone
