// GpuCompiler and compile_for_gpu(): a unit's cubin for a GPU that need not be there.
#pragma once

#include <memory>
#include <string_view>

#include <hone/kernel.h>

namespace hone {

/// The NVRTC that the environment names or the machine has: looked for when this is made, opened by the first
/// compile(). Thread-safe.
class GpuCompiler {
 public:
  GpuCompiler();
  ~GpuCompiler();
  GpuCompiler(const GpuCompiler&) = delete;
  GpuCompiler& operator=(const GpuCompiler&) = delete;

  /// For an architecture like "sm_90". Throws Error: compile_failed with the compiler's log; unsupported when there is
  /// no NVRTC, when it does not know the architecture, or when this build of Hone has no CUDA support.
  Binary compile(const Unit& unit, std::string_view architecture) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

/// By a compiler of its own.
Binary compile_for_gpu(const Unit& unit, std::string_view architecture);

}  // namespace hone
