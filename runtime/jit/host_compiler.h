// HostCompiler: turns a Unit into a shared object with the system's C++ compiler. The host device's NVRTC.
#pragma once

#include <filesystem>
#include <string>

#include <hone/kernel.h>

namespace hone {

/// A module tells this beside its results. Under the sanitizers of the library, which see more, `checked` adds nothing.
enum class HostInstrumentation {
  none,
  checked,  ///< tables for source_lines(), and operations that are undefined (docs/host-device.md)
  traced,   ///< the same tables, and every access of memory; without sanitizers
};

/// Immutable and thread-safe: any number of units may be compiled at once, each in a private folder under $TMPDIR or
/// /tmp that is removed afterwards.
class HostCompiler {
 public:
  /// `requested`: a name to look up on PATH or a path; "": the first of c++, g++ and clang++. Never fails.
  /// `architecture` is what the binaries are marked with.
  HostCompiler(const std::string& requested, std::string architecture,
               HostInstrumentation instrumentation = HostInstrumentation::none);

  /// The compiler's file, its size and the sanitizers; "" when there is no compiler. Runs nothing.
  std::string identity() const;

  /// Throws unsupported when there is no compiler, compile_failed with command and log when it refuses the unit
  /// (lines are those of the unit's files; the unit's own source is called "unit.cu"), io_failed when the folder
  /// cannot be written.
  Binary compile(const Unit& unit) const;

 private:
  std::string requested_;
  std::string architecture_;
  HostInstrumentation instrumentation_;
  std::filesystem::path compiler_;  ///< empty: none found
  bool is_clang_ = false;
};

}  // namespace hone
