// Problem: what is asked of a kernel family; SizeRange: the sizes that share one winner.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hone/dtype.h>

namespace hone {

class KernelFamily;

/// What the caller demands of the arithmetic.
enum class Numerics : std::uint8_t {
  reproducible,  ///< the same winner gives the same bits from run to run
};

/// What becomes of NaNs. For dtypes without NaN both are the same.
enum class NanPolicy : std::uint8_t {
  propagate,  ///< one NaN makes the result NaN, as in NumPy and PyTorch; argmin and argmax return its index
  ignore,     ///< NaNs count as if they were not there
};

/// How a call's launches reach the device. A second, dependent kernel costs the device 0.8 µs in a stream, and a host
/// that is not ahead of it 2.7, but 0.45 in a replayed graph (H100, CUDA 13.0, 2026-11): the fastest candidate of one
/// context is often not that of the other.
enum class LaunchContext : std::uint8_t {
  stream,  ///< enqueued call by call
  graph,   ///< captured once, then replayed
};

inline constexpr std::array<std::string_view, 2> kLaunchContextNames{"stream", "graph"};
constexpr std::string_view name(LaunchContext context) {
  return kLaunchContextNames[static_cast<std::size_t>(context)];
}

/// Up to three extents; each family says what they mean. Unused ones are 1.
using Extents = std::array<std::int64_t, 3>;

/// Elements from the beginning of one row to that of the next, in the input and in the output.
using Pitches = std::array<std::int64_t, 2>;

/// Numbers that a family's kernels take as arguments, such as the scale of a softmax; each family says what they mean.
using Scalars = std::array<std::optional<double>, 2>;

/// The widest alignment that any built-in family distinguishes, in bytes.
inline constexpr std::uint32_t kMaxAlignment = 16;

/// What is asked. Plain data: built on every call, so nothing here allocates.
struct Problem {
  const KernelFamily* family = nullptr;  ///< not owned; outlives every Session that sees it
  std::uint8_t operation = 0;            ///< index into KernelFamily::operations()
  DType dtype = DType::f32;
  std::optional<DType> accumulator = {};  ///< empty: the family's choice for the operation and dtype
  std::optional<DType> result = {};       ///< likewise
  Numerics numerics = Numerics::reproducible;
  NanPolicy nan = NanPolicy::propagate;
  std::uint32_t alignment = kMaxAlignment;  ///< bytes; what the caller's pointers are all aligned to
  Extents extents{1, 1, 1};
  Pitches pitches{0, 0};  ///< 0: rows lie side by side. A winner serves any pitch, as far as its alignment goes
  Scalars scalars = {};   ///< empty: the family's neutral value. A winner serves any
  LaunchContext launch_context = LaunchContext::stream;
};

/// The largest power of two up to kMaxAlignment that divides the address.
std::uint32_t alignment_of(const void* pointer);

/// First and last value of one extent that a winner serves.
struct SizeRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(const SizeRange&) const = default;
};

/// Size classes are numbered in quarters of an octave: class c lies around 2^(c÷4). Where there is only one extent, it
/// holds the sizes from above 2^(c÷4−⅛) to below 2^(c÷4+⅛); and class 32 all up to 279: such problems differ by less
/// than the jitter of a launch.
inline constexpr int kClassesPerOctave = 4;
inline constexpr int kSmallestSizeClass = 8 * kClassesPerOctave;
inline constexpr int kLargestSizeClass = 63 * kClassesPerOctave;

/// Of a lone extent; 0 to 2^63 − 1.
int size_class(std::int64_t extent);
SizeRange size_range(int size_class);

/// ⌊2^(size_class÷4)⌋; of the largest class, whose center is beyond 2^63, that of the class below.
std::int64_t class_center(int size_class);

/// Of each extent. Shapes, in which more than the first is used, have every fourth class alone, of whole octaves: class
/// 4k holds the extents from above 2^(k−½) to below 2^(k+½), and class 0 those of 0 and 1.
std::array<int, 3> size_classes(const Extents& extents);

/// The extents that share their classes with these; 0 and 1, for which a kernel may have to do different things, are
/// ranges of their own.
std::array<SizeRange, 3> size_ranges(const Extents& extents);

/// How far two shapes are apart, in octaves: √(Σ log₂²(a ÷ b)) over the extents, so that 1024 × 1 and 1 × 1024 are 14
/// octaves apart. An extent of 0 counts as 1.
double shape_distance(const Extents& a, const Extents& b);

/// "1048576", "1024x64": the extents that the family uses, as `hone tune --size` has them. Of three, a first one of 1
/// is left out: a batch of one is a matrix.
std::string shape_text(const Problem& problem);

/// "reduce sum f32 n=1048576 in a graph": for messages.
std::string to_string(const Problem& problem);

}  // namespace hone
