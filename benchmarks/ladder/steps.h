// The steps of the ladder: sums of floats (and a maximum), from a tree in global memory to a last block, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device_facts.h>
#include <hone/kernel.h>

namespace hone::benchmarks {

/// How block sums become one sum.
enum class LadderFinish {
  levels,       ///< the kernel is launched on its own results until one is left
  atomic,       ///< atomics on the result, which is filled with ladder_start_byte() before
  two_kernels,  ///< a second kernel
  last_block,   ///< the last block to arrive
};

/// The grid of a step's first launch.
enum class LadderGrid {
  elements,  ///< a thread for each element
  wave,      ///< as many blocks as are resident at once, each with many elements
  thousand,  ///< 1024 blocks, whatever fits at once: the tail effect
};

struct LadderStep {
  std::string_view name;
  std::string_view file;  ///< of its kernel, without .cu, and the kernel's name
  LadderFinish finish;
  LadderGrid grid;
  std::string_view teaches;  ///< what it changes in the step before
  bool is_max = false;       ///< it finds the largest element, not the sum
  std::string_view cuda_header = {};  ///< a header of CUDA that it includes
};

std::span<const LadderStep> ladder_steps();

/// "": the step runs on such a device. Else it says why not: the header of CUDA that it includes is missing.
std::string why_left_out(const LadderStep& step, const DeviceFacts& facts);

/// The steps that run on such a device.
std::vector<LadderStep> ladder_steps_on(const DeviceFacts& facts);

inline constexpr std::int64_t kLadderBlockThreads = 256;
inline constexpr std::int64_t kMostLadderElements = (std::int64_t{1} << 31) - 1;  ///< 32-bit indices

/// The memory of a call. `in` is aligned to 16 bytes; `scratch` holds the step's ladder_scratch_bytes() and is zero
/// before the first call.
struct LadderBuffers {
  const float* in;
  float* out;
  std::byte* scratch;
};

std::size_t ladder_scratch_bytes(const LadderStep& step, std::int64_t n);

/// Every byte of *out before a step that finishes with atomics: a sum begins with 0, a maximum with a NaN, which gives
/// way to any number.
int ladder_start_byte(const LadderStep& step);

Unit ladder_unit(const LadderStep& step);

/// The launches of a call, in stream order; a step that finishes with atomics wants *out filled first. `most_blocks` is
/// what the device holds at once of the step's kernel.
std::vector<Launch> ladder_launches(const LadderStep& step, const LadderBuffers& buffers, std::int64_t n,
                                    std::int64_t most_blocks);

}  // namespace hone::benchmarks
