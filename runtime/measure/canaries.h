// Canaries: patterns around the arrays of a verification, which show what a kernel writes beyond them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <hone/device.h>

namespace hone {

/// Each array has bytes of its own around it, so that what a kernel without a guard copies from behind one array to
/// behind another is seen. Behind inputs these are NaNs or huge numbers, which spoil a result that takes them in. Not
/// thread-safe.
class Canaries {
 public:
  /// On either side of an array: more than a tile of most kernels, such as 64 rows of 4096 floats. A write that steps
  /// over it is not seen.
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  /// All work is enqueued on `stream`; `device` must outlive the canaries.
  Canaries(Device& device, Stream stream) : device_(device), stream_(stream) {}

  /// An array in device memory that has kBytes of this verification's own on either side.
  void add(std::string name, std::byte* array, std::size_t size_bytes);

  /// Enqueues writing all patterns.
  void set();

  /// Waits for the stream. "" when all patterns are whole, else what was written where: "wrote at byte 4000 of 'out',
  /// which has 4000 bytes".
  std::string overwritten();

 private:
  struct Guarded {
    std::string name;
    std::byte* array;
    std::size_t size_bytes;
    std::byte pattern;
  };

  /// The first byte of a side that differs from the pattern; kBytes when there is none.
  std::size_t first_difference(const std::byte* side, std::byte pattern);

  Device& device_;
  Stream stream_;
  std::vector<Guarded> arrays_;
  std::vector<std::byte> found_;
};

}  // namespace hone
