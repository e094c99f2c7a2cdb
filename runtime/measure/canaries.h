// Canaries: patterns around the arrays of a verification, which show what a kernel writes beyond them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
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

  /// The bytes of the patterns, one for each array, in device memory. Enqueued on `stream`.
  static DeviceBuffer patterns(const std::shared_ptr<Device>& device, Stream stream);

  /// `patterns` comes from patterns() and must outlive the canaries, as must `device`.
  Canaries(Device& device, Stream stream, const DeviceBuffer& patterns)
      : device_(device), stream_(stream), patterns_(patterns.as<std::byte>()) {}

  /// An array in device memory that has kBytes of this verification's own on either side.
  void add(std::string name, std::byte* array, std::size_t size_bytes);

  /// Enqueues writing all patterns.
  void set();

  /// Appends what is to be whole: two runs for each array.
  void append_runs(std::vector<RepeatedBytes>& runs) const;

  /// `differences`: of these runs. "" when all patterns are whole, else what was written where: "wrote at byte 4000 of
  /// 'out', which has 4000 bytes".
  std::string overwritten(std::span<const std::size_t> differences) const;

 private:
  struct Guarded {
    std::string name;
    std::byte* array;
    std::size_t size_bytes;
    std::size_t pattern;  ///< its place among the patterns
  };

  Device& device_;
  Stream stream_;
  const std::byte* patterns_;
  std::vector<Guarded> arrays_;
};

}  // namespace hone
