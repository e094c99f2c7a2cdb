// tuned_rms_norm(): RMS normalisation of the rows of a matrix in device memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hone/call.h>
#include <hone/problem.h>
#include <hone/stream.h>

namespace hone {

/// Describes a call. Plain data. Pitches are the distances, in elements, from one row to the next: in_pitch of `in` and
/// `residual`, out_pitch of `out` and `sum`; 0 means that rows lie side by side.
struct RmsNormSpec {
  static constexpr double kUsualEps = 1e-6;

  DType dtype = DType::f16;  ///< of all arrays: f16, bf16 or f32
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double eps = kUsualEps;  ///< added to the mean of the squares; finite, not negative, rounded to f32
  std::int64_t in_pitch = 0;
  std::int64_t out_pitch = 0;
};

/// The arrays of a call: `in` and `out`, rows × columns each, and those that may be null.
struct RmsNormArrays {
  const void* in = nullptr;
  const void* residual = nullptr;  ///< rows × columns: what is normalised is in + residual; needs `sum`
  const void* weight = nullptr;    ///< columns: results are multiplied by them
  void* out = nullptr;
  void* sum = nullptr;  ///< rows × columns: in + residual; needs `residual`
};

/// The family that tuned_rms_norm() dispatches to: extents {rows, columns, 1}; operations plain, weighted, add and
/// weighted_add (with a residual); buffers {in, residual?, weight?, out, sum?}; Problem::scalars[0] is eps.
const KernelFamily& rms_norm_family();

/// The Problem of a tuned_rms_norm() call whose arrays are all aligned to `alignment` bytes.
Problem rms_norm_problem(const RmsNormSpec& spec, bool has_weight, bool has_residual,
                         std::uint32_t alignment = kMaxAlignment);

/// Writes h ÷ √(mean(h²) + eps) · weight for each row h of `in`, or of in + residual, which is then written to `sum`
/// (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019). All arrays are in memory of the session's device
/// and stay the caller's; the call is enqueued on `stream`, and neither waits nor allocates there. Thread-safe.
///
/// `out` may be `in` and `sum` may be `residual`, where the pitches are equal; otherwise neither may overlap another
/// array, though their rows may lie in the gaps between others'. What lies between rows is left alone. Pointers need
/// the alignment of their elements only, and rows may begin anywhere; where every row is aligned to 16 bytes, that is
/// another problem with its own winner. Any extent may be 0 (nothing is written, the Choice has no winner).
///
/// in + residual is rounded to the dtype, as it is stored, then squared. Squares are added up in f32 and results are
/// rounded once: docs/softmax.md has the bound of the error. A row with a NaN becomes NaN altogether. As in PyTorch,
/// the formula is computed in f32 as it stands: ±∞ becomes NaN and what is finite beside it 0; a row whose squares add
/// up to more than f32 holds, as those of 1.9 · 10^19 do, becomes 0; with an eps of 0 a row of zeros becomes NaN. The
/// same bits from run to run for one winner and one alignment.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, a residual without a sum or a sum without a
/// residual, arrays that overlap, a negative extent, a product of extents that overflows, a pitch below the columns, an
/// eps that is negative or not finite, and other dtypes; otherwise as Session::launch.
inline Choice tuned_rms_norm(Session& session, const RmsNormSpec& spec, const RmsNormArrays& arrays, Stream stream) {
  const std::int64_t in_pitch = spec.in_pitch != 0 ? spec.in_pitch : spec.columns;
  const std::int64_t out_pitch = spec.out_pitch != 0 ? spec.out_pitch : spec.columns;
  const bool has_residual = arrays.residual != nullptr || arrays.sum != nullptr;
  const bool may_replace = in_pitch == out_pitch || spec.rows == 1;
  std::array<CallArray, 5> passed;
  std::size_t count = 0;
  passed[count++] = {"in", arrays.in, spec.rows, spec.columns, in_pitch};
  if (has_residual) passed[count++] = {"residual", arrays.residual, spec.rows, spec.columns, in_pitch};
  if (arrays.weight) passed[count++] = {"weight", arrays.weight, 1, spec.columns, spec.columns};
  passed[count++] = {"out", arrays.out, spec.rows, spec.columns, out_pitch, true, may_replace ? 0 : -1};
  if (has_residual)
    passed[count++] = {"sum", arrays.sum, spec.rows, spec.columns, out_pitch, true, may_replace ? 1 : -1};
  std::uint32_t alignment = kMaxAlignment;
  for (std::size_t i = 0; i < count; ++i) alignment = std::min(alignment, alignment_of(passed[i].pointer));
  return launch_call(session, "tuned_rms_norm",
                     rms_norm_problem(spec, arrays.weight != nullptr, has_residual, alignment),
                     std::span(passed).first(count), stream);
}

}  // namespace hone
