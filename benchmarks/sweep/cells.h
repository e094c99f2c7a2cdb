// Cell: one thing to measure; choose_cells(): which ones a run measures.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_family.h>

#include "benchmarks/common/interleaved.h"

namespace hone::benchmarks {

/// One operation on n elements in one setting, at every address that was asked for.
struct Cell {
  std::uint8_t operation = 0;  ///< index into KernelFamily::operations()
  DType dtype = DType::f32;
  std::int64_t n = 0;
  Setting setting = {};
  Numerics numerics = Numerics::fast;
  std::vector<int> offsets{0};  ///< measured so many elements behind a multiple of 256 bytes, and less than 256 bytes
};

/// The cells that the command line asks for. Empty lists mean the default sweep.
struct CellSelection {
  std::vector<std::string> operations = {};
  std::vector<std::string> dtypes = {};
  std::vector<std::int64_t> sizes = {};
  std::vector<Setting> settings{{LaunchContext::stream}, {LaunchContext::graph}};
  Numerics numerics = Numerics::fast;
  std::vector<int> offsets{0, 1};
};

/// The cells of all pairs of operation and dtype that the family accepts, those of one dtype together.
///
/// Without sizes: the sum of f32 at every other power of two from 2^8 to 2^30, half of them made odd, at both
/// alignments; every other pair at four such sizes, misaligned at two of them. Throws Error(not_found) for unknown
/// names.
std::vector<Cell> choose_cells(const KernelFamily& family, const CellSelection& selection);

/// "1000", "2^20", "2^20+1", "2^8..2^30" (every power between) or "2^8..2^30/2" (every other), with commas between.
/// Throws Error(invalid_argument).
std::vector<std::int64_t> parse_sizes(std::string_view text);

/// "1024x64", "2^20+1x2^6", with commas between: rows and columns. Throws Error(invalid_argument).
std::vector<std::array<std::int64_t, 2>> parse_shapes(std::string_view text);

/// The Problem of a cell, so many elements behind an aligned address.
Problem problem_of(const Cell& cell, int offset);

/// Arrays that a call reads.
int input_count(const Problem& problem);

}  // namespace hone::benchmarks
