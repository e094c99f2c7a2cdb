// PlantedKernel: a small kernel in a wrong and a right form, and what finds the wrong one.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include <hone/host_check.h>

namespace hone::test {

/// The builds that run the suite. What one of them cannot see, another may.
enum class CheckedBuild { plain, address, thread };

/// Kernels have the signature entry(const int* in, int* out, unsigned* words, int round) with in[i] = i and 256
/// elements, 256 zeros in `out` and 64 in `words`. The macro WRONG is 1 or 0. Lines at fault end in "// <-".
struct PlantedKernel {
  std::string_view name;
  std::string_view source;
  std::array<std::string_view, 3> finding;  ///< in the report of the wrong form, by CheckedBuild; "": stays unseen
  Dim3 grid{1, 1, 1};
  Dim3 block{64, 1, 1};
  std::uint32_t dynamic_smem_bytes = 0;
  std::optional<int> expected = {};  ///< what out[round] must be: the reference
  int rounds = 1;                    ///< launches in a row
  bool crashes_plain = false;        ///< the wrong form may end the process in a build where nothing finds it
};

std::span<const PlantedKernel> planted_kernels();

/// The kernel with or without its bug, ready to check. What differs from `expected` is thrown as device_failed.
HostCheck check_of(const PlantedKernel& kernel, bool is_wrong);

}  // namespace hone::test
