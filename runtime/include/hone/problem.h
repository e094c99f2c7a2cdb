// Problem: one call of a kernel family, as data; SizeRange: the sizes that share one winner.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hone/dtype.h>

namespace hone {

class KernelFamily;

/// A guarantee about the bits of a result; docs/numerics.md has it for each operation.
enum class Numerics : std::uint8_t {
  fast,          ///< one winner gives the same bits from run to run
  reproducible,  ///< every policy, grid, alignment and device gives the same bits: those of canonical_reduce()
};

inline constexpr std::array<std::string_view, 2> kNumericsNames{"fast", "reproducible"};
constexpr std::string_view name(Numerics numerics) { return kNumericsNames[static_cast<std::size_t>(numerics)]; }

/// The treatment of NaNs. For dtypes without NaN both policies are the same.
enum class NanPolicy : std::uint8_t {
  propagate,  ///< one NaN makes the result NaN, as in NumPy and PyTorch; argmin and argmax return its index
  ignore,     ///< NaNs count as if they were not there
};

/// The way in which the launches of a call reach the device. The fastest candidate of one context is often not that of
/// the other: a second, dependent kernel costs 0.8 µs of device time in a stream, or 2.7 µs if the host does not run
/// ahead, and 0.45 µs in a replayed graph (H100, CUDA 13.0, 2026-11).
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

/// Leading dimensions of input and output: elements from the beginning of one row to that of the next.
using Pitches = std::array<std::int64_t, 2>;

/// Numbers that kernels take as arguments, such as the scale of a softmax; each family says what they mean.
using Scalars = std::array<std::optional<double>, 4>;

/// The widest alignment that any built-in family distinguishes, in bytes.
inline constexpr std::uint32_t kMaxAlignment = 16;

/// One call, without its pointers and its stream. Plain data, built on every call: nothing here allocates.
struct Problem {
  const KernelFamily* family = nullptr;  ///< not owned; outlives every Session that sees it
  std::uint8_t operation = 0;            ///< index into KernelFamily::operations()
  DType dtype = DType::f32;
  std::optional<DType> accumulator = {};  ///< empty: the family's choice for the operation and dtype
  std::optional<DType> result = {};       ///< empty: the family's choice, likewise
  Numerics numerics = Numerics::fast;
  NanPolicy nan = NanPolicy::propagate;
  std::uint32_t alignment = kMaxAlignment;  ///< bytes that all pointers of the caller are aligned to
  Extents extents{1, 1, 1};
  Pitches pitches{0, 0};  ///< 0: rows without gaps. A winner serves every pitch that keeps `alignment`
  Scalars scalars = {};   ///< empty: the family's neutral value. A winner serves every value
  LaunchContext launch_context = LaunchContext::stream;
};

/// The largest power of two up to kMaxAlignment that divides the address.
std::uint32_t alignment_of(const void* pointer);

/// The first and the last value of one extent that a winner serves.
struct SizeRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(const SizeRange&) const = default;
};

/// Size classes are numbered in quarters of an octave: class c lies around 2^(c÷4). The class of a lone extent holds
/// the sizes between 2^(c÷4−⅛) and 2^(c÷4+⅛). Class 32 also holds all smaller sizes, up to 279 in all: such problems
/// differ by less than the jitter of a launch.
inline constexpr int kClassesPerOctave = 4;
inline constexpr int kSmallestSizeClass = 8 * kClassesPerOctave;
inline constexpr int kLargestSizeClass = 63 * kClassesPerOctave;

/// The class of a lone extent from 0 to 2^63 − 1, and the sizes of a class.
int size_class(std::int64_t extent);
SizeRange size_range(int size_class);

/// The center of a class, ⌊2^(size_class÷4)⌋. The center of the largest one would be beyond 2^63: it has that of the
/// class below.
std::int64_t class_center(int size_class);

/// The class of each extent. Shapes, which use more than the first extent, have classes of whole octaves, numbered 4k:
/// class 4k holds the extents between 2^(k−½) and 2^(k+½), and class 0 the extents 0 and 1.
std::array<int, 3> size_classes(const Extents& extents);

/// The extents that share a winner with these. In shapes, 0 and 1 are ranges of their own, because a kernel may treat
/// them differently.
std::array<SizeRange, 3> size_ranges(const Extents& extents);

/// True if no extents that share a winner with these have elements: nothing can be measured of an empty shape. A lone
/// extent of 0 shares its winner with others.
bool is_empty_class(const Extents& extents);

/// True if each extent is in its range.
bool is_within(const Extents& extents, const std::array<SizeRange, 3>& ranges);

/// The distance of two shapes in octaves: √(Σ log₂²(aᵢ ÷ bᵢ)) over the extents. So 1024 × 1 and 1 × 1024 are 14 octaves
/// apart. An extent of 0 counts as 1.
double shape_distance(const Extents& a, const Extents& b);

/// The extents that the family uses, as `hone tune --size` takes them: "1048576", "1024x64". The first of three is left
/// out if it is 1, since a batch of one is a matrix.
std::string shape_text(const Problem& problem);

/// Names a problem in messages: "reduce sum f32 n=1048576 in a graph".
std::string to_string(const Problem& problem);

}  // namespace hone
