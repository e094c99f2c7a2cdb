// InputArena: device memory full of numbers, out of which many copies of an input are handed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <hone/device.h>
#include <hone/dtype.h>

namespace hone::benchmarks {

/// Where the copies of a call's inputs lie.
struct InputLayout {
  std::size_t stride_bytes = 0;  ///< from one array to the next
  std::size_t offset_bytes = 0;  ///< of each array from a multiple of 256 bytes
  int inputs = 1;                ///< arrays that a call reads
  int copies = 1;                ///< calls that read different memory
};

/// One allocation for a whole run, so that everyone reads the same buffers. Not thread-safe.
class InputArena {
 public:
  /// Throws out_of_memory.
  InputArena(std::shared_ptr<Device> device, std::size_t bytes);

  /// Bytes that a call of `inputs` arrays of n elements needs.
  static std::size_t bytes_for(DType dtype, std::int64_t n, int inputs);

  /// Fills everything with one pattern of a prime number of elements, over and over: floats are positive and around 1
  /// (what sums, norms and maxima are equally fast and comparable on), integers take their whole range.
  void fill(DType dtype, Stream stream);

  /// Arrays that begin `offset` elements behind a multiple of 256 bytes, and fewer than 256 bytes behind it.
  InputLayout layout(DType dtype, std::int64_t n, int inputs, int offset, int most_copies) const;

  /// Array `input` of copy `turn` modulo the number of copies.
  void* at(const InputLayout& layout, int turn, int input) const;

  /// The first array of each copy.
  std::vector<const void*> inputs(const InputLayout& layout) const;

  /// `bytes`, or what is left of the arena behind the beginning of the last copy.
  std::size_t readable_bytes(const InputLayout& layout, std::int64_t bytes) const;

  /// The sum of the first n elements, exact but for the rounding of a long double. Only after fill().
  long double sum_of_first(std::int64_t n) const;

  /// The largest of these.
  long double max_of_first(std::int64_t n) const;

  /// The element at an address inside of the arena, as fill() left it.
  long double value_at(const void* address) const;

  void* data() const { return memory_.data(); }
  std::size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  std::shared_ptr<Device> device_;
  DeviceBuffer memory_;
  std::vector<std::byte> pattern_;   ///< one period of what was filled in last
  std::vector<long double> values_;  ///< its elements
};

}  // namespace hone::benchmarks
