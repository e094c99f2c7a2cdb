// NvrtcCompiler: units to cubins, through NVRTC.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

#include "runtime/jit/nvrtc_library.h"

namespace hone {

/// Compiles for any architecture that the installed NVRTC knows; needs no GPU. The library is opened by the first
/// compile(), never before. Thread-safe: several threads compile at the same time.
class NvrtcCompiler {
 public:
  /// Throws what line_info_from_environment() throws.
  explicit NvrtcCompiler(NvrtcSearch search);

  /// file_identity() of the library, without opening it; "" when none is found.
  std::string identity() const;

  /// As GpuCompiler::include_folders().
  std::vector<std::string> include_folders(std::string_view header) const;

  /// The cubin of `unit` for `architecture` ("sm_90"). Throws Error: compile_failed with the unit, the options and
  /// the compiler's log; unsupported when NVRTC is missing (with where it was looked for) or does not know the
  /// architecture (with those that it knows).
  Binary compile(const Unit& unit, std::string_view architecture) const;

 private:
  const NvrtcLibrary& library() const;

  NvrtcSearch search_;
  std::filesystem::path path_;
  bool has_line_info_;
  mutable std::mutex mutex_;  // guards library_ until it is set, after which it never changes
  mutable std::unique_ptr<const NvrtcLibrary> library_;
};

}  // namespace hone
