// The handles of the C interface, and what their functions share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include <hone/c.h>
#include <hone/custom_reduction.h>
#include <hone/reduce_op.h>
#include <hone/session.h>
#include <hone/tunable_kernel.h>

#include "bindings/c/status.h"

struct hone_device {
  std::shared_ptr<hone::Device> device;
};

struct hone_session {
  hone::Session session;
};

struct hone_problem {
  hone::Problem problem;
};

struct hone_reduction {
  hone::CustomReduction reduction;
};

struct hone_kernel {
  hone::TunableKernel kernel;
};

namespace hone::c {

/// Throws invalid_argument for a number that is no dtype, or no operation.
DType dtype_of(std::int32_t number, const char* what);
ReduceOp op_of(std::int32_t number);

/// −1: none.
std::optional<DType> optional_dtype(std::int32_t number, const char* what);

inline Stream stream_of(void* stream) { return static_cast<Stream>(stream); }

/// Fills in the caller's struct, where there is one.
void write_choice(const Choice& choice, hone_choice* to);

/// Gives the caller a problem that `make` makes, of a power of two for an alignment.
template <class Make>
hone_status make_problem(std::uint32_t alignment, hone_problem** problem, const Make& make) {
  return guarded([&] {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("alignment is {}: no power of two", alignment));
    required(problem, "problem") = new hone_problem{make(std::min(alignment, kMaxAlignment))};
  });
}

}  // namespace hone::c
