// GpuCompiler and compile_for_gpu(): compile for a GPU that need not be present.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// Compiles with the NVRTC that HONE_NVRTC names, or else that of the CUDA toolkit. The constructor looks for it, and
/// the first compile() loads it. Thread-safe.
class GpuCompiler {
 public:
  /// NVRTC keeps no more cores of a process busy (CUDA 13.0: 32 units take as long with four threads as with sixteen).
  static constexpr std::size_t kMostCores = 4;

  GpuCompiler();
  ~GpuCompiler();
  GpuCompiler(const GpuCompiler&) = delete;
  GpuCompiler& operator=(const GpuCompiler&) = delete;

  /// Identifies the NVRTC that was found without loading it; "" if there is none.
  std::string identity() const;

  /// The folders of CUDA's own headers, for Unit::include_folders, if the toolkit of the NVRTC that was found has
  /// `header` ("cooperative_groups.h"); else none.
  std::vector<std::string> include_folders(std::string_view header) const;

  /// Compiles a cubin for an architecture like "sm_90". Throws Error: compile_failed with the compiler's log,
  /// unsupported if there is no NVRTC, if it does not know the architecture, or if this build of Hone has no CUDA
  /// support.
  Binary compile(const Unit& unit, std::string_view architecture) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Compiles with a GpuCompiler of its own.
Binary compile_for_gpu(const Unit& unit, std::string_view architecture);

}  // namespace hone
