// CheckArgument: one kernel argument of `hone check`, from the command line to memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hone/host_check.h>

namespace hone::tuner {

/// "i32=1000" is a value, "f32[1000]=random" a buffer.
struct CheckArgument {
  std::string text;              ///< as typed
  bool is_buffer = false;
  std::vector<std::byte> bytes;  ///< the value, or the buffer's contents before a run
  bool compared = true;          ///< false: "…,any", a buffer that may differ from order to order
};

/// TYPE=VALUE or TYPE[N]=FILL[,any]. TYPE is i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 or f64; FILL is a number (all
/// elements), iota, random, random:SEED or nan; zero when left out. Throws CommandError(usage).
CheckArgument parse_check_argument(std::string_view text);

/// Appends the argument: a value by its bits, a buffer by `memory`.
void push_argument(Arguments& arguments, const CheckArgument& argument, void* memory);

}  // namespace hone::tuner
