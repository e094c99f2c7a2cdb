#include <hone/tuned_reduce.h>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {
namespace {

[[noreturn]] void refuse(ReduceOp op, DType dtype, std::int64_t n, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("tuned_reduce({} {}, n = {}): {}", name(op), info(dtype).name, n, why));
}

/// Values that were cast from elsewhere may name nothing.
void require_known(ReduceOp op, DType dtype) {
  if (static_cast<std::size_t>(op) >= kReduceOpNames.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("tuned_reduce: there is no operation {}", static_cast<int>(op)));
  if (static_cast<std::size_t>(dtype) >= kDTypes.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("tuned_reduce: there is no dtype {}", static_cast<int>(dtype)));
}

bool is_aligned(const void* pointer, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(pointer) % info(dtype).size_bytes == 0;
}

}  // namespace

Choice tuned_reduce(Session& session, ReduceOp op, DType dtype, const void* in, std::int64_t n, void* out,
                    Stream stream) {
  require_known(op, dtype);
  const Problem problem = reduce_problem(op, dtype, n, alignment_of(in));
  const DType result = reduce_result_dtype(op, dtype);
  if (n < 0) refuse(op, dtype, n, "a size cannot be negative");
  if (!out) refuse(op, dtype, n, fmt::format("'out' is null; pass device memory for one {}", info(result).name));
  if (!in && n > 0) refuse(op, dtype, n, "'in' is null; pass device memory");
  if (!is_aligned(in, dtype))
    refuse(op, dtype, n, fmt::format("'in' at {} is not aligned to its {}-byte elements", in, info(dtype).size_bytes));
  if (!is_aligned(out, result))
    refuse(op, dtype, n, fmt::format("'out' at {} is not aligned to its {}-byte element", out, info(result).size_bytes));

  // Without elements nothing is read, and any address will do.
  void* const buffers[] = {n == 0 ? out : const_cast<void*>(in), out};
  return session.launch(problem, buffers, stream);
}

Choice tuned_reduce_and_wait(Session& session, ReduceOp op, DType dtype, const void* in, std::int64_t n,
                             void* out_host, Stream stream) {
  require_known(op, dtype);
  if (!out_host) refuse(op, dtype, n, "'out_host' is null; pass host memory");
  Device& device = *session.device();
  const std::size_t bytes = info(reduce_result_dtype(op, dtype)).size_bytes;
  const DeviceBuffer out(session.device(), bytes);
  const Choice choice = tuned_reduce(session, op, dtype, in, n, out.data(), stream);
  device.copy_to_host(out_host, out.data(), bytes, stream);
  device.synchronize(stream);
  return choice;
}

}  // namespace hone
