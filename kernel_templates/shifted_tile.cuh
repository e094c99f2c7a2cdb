// The shared memory of transpose_shifted.cuh: input rows at any alignment, in slots.
//
// Every staged row of the input has a slot of kRowBytes. Its aligned packs are stored as they are in global memory, so
// the row's first element is as far from the start of the slot as it is from a multiple of 16 bytes in global memory.
// For elements of 4 bytes (kPack = 4), 32 columns and a pitch that misaligns each row by 4 bytes more:
//
//                pack 0           pack 1             pack 8
//   row 0   | .   a0  a1  a2 | a3  a4  a5  a6 | … | a31 .   .   . |   misalignment:  4 bytes
//   row 1   | .   .   b0  b1 | b2  b3  b4  b5 | … | b30 b31 .   . |                  8
//   row 2   | .   .   .   c0 | c1  c2  c3  c4 | … | c29 c30 c31 . |                 12
//   row 3   | d0  d1  d2  d3 | d4  d5  d6  d7 | … | .   .   .   . |                  0
//   gap     |   |
//   row 4   | .   e0  e1  e2 | e3  e4  e5  e6 | … | e31 .   .   . |                  4: rows kPack apart are alike
//   …
//
// A dot is an element of a neighbouring tile, or undefined. The gap of kGapBytes behind each group of kPack rows moves
// the next group one bank further, so lanes that read a column in rows kPack apart have no bank conflicts.
#pragma once

#include "element.cuh"
#include "tile_order.cuh"

namespace hone {

template <class T, unsigned kTileRows, unsigned kTileColumns, class Index>
struct ShiftedTile {
  static constexpr unsigned kSectorBytes = 32, kPackBytes = 16;
  static constexpr unsigned kStep = kSectorBytes / sizeof(T);
  static constexpr unsigned kPack = kPackBytes / sizeof(T);  ///< elements
  static constexpr unsigned kStagedRows = kTileRows + kStep;  ///< of the input; the first is never used
  static constexpr unsigned kRowPacks = kTileColumns / kPack + 1;
  static constexpr unsigned kRowBytes = kRowPacks * kPackBytes;
  static constexpr unsigned kGroups = kStagedRows / kPack;
  static constexpr unsigned kGapBytes = sizeof(T) < 4 ? 4 : sizeof(T);  ///< between groups of kPack rows
  static constexpr unsigned kGroupBytes = kPack * kRowBytes + kGapBytes;

  using Given = Matrices<T, Index>;
  using Word = typename Select<sizeof(T) == 8, unsigned long long, unsigned>::type;
  using WordPack = Pack<Word, kPackBytes / sizeof(Word)>;

  struct alignas(16) Slots {
    unsigned char bytes[kGroups * kGroupBytes];

    __device__ unsigned char* slot(unsigned row) { return bytes + row * kRowBytes + row / kPack * kGapBytes; }
  };

  /// A tile in its matrix. Staged rows are counted from kStep rows before the tile's first row.
  struct Place {
    long long in;               ///< bytes from the start of the input to staged row 0, which need not exist
    T* out;                     ///< of the tile's first row and column
    unsigned first, end;        ///< the staged rows [first, end) exist
    unsigned columns;           ///< that exist
    bool is_full;               ///< the matrix has all elements of the tile's output packs
    bool is_inside;             ///< all input packs are inside the batch of matrices
  };

  static __device__ unsigned low_bits(const void* pointer) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer));
  }

  /// The end of the batch of matrices, in bytes from the start of the input.
  static __device__ long long end_of(const Given& given) {
    const long long rows = static_cast<long long>(given.batch) * static_cast<long long>(given.rows);
    return ((rows - 1) * given.in_pitch + static_cast<long long>(given.columns)) * static_cast<long long>(sizeof(T));
  }

  static __device__ Place place(const Given& given, const TilePosition<Index>& tile) {
    const Index row = tile.row * kTileRows, column = tile.column * kTileColumns;
    const Index rows = given.rows + kStep - row, columns = given.columns - column;  // rows: staged ones
    const auto matrix = static_cast<long long>(tile.matrix);
    const long long first_in = matrix * static_cast<long long>(given.rows) + static_cast<long long>(row) - kStep;
    const long long first_out = matrix * static_cast<long long>(given.columns) + static_cast<long long>(column);
    Place at;
    at.in = (first_in * given.in_pitch + static_cast<long long>(column)) * static_cast<long long>(sizeof(T));
    at.out = given.out + (first_out * given.out_pitch + static_cast<long long>(row));
    at.first = row == 0 ? kStep : 1;
    at.end = rows < kStagedRows ? static_cast<unsigned>(rows) : kStagedRows;
    at.columns = columns < kTileColumns ? static_cast<unsigned>(columns) : kTileColumns;
    at.is_full = row != 0 && at.end == kStagedRows && at.columns == kTileColumns;
    const long long pitch_bytes = given.in_pitch * static_cast<long long>(sizeof(T));
    at.is_inside = at.in + at.first * pitch_bytes >= kPackBytes &&
                   at.in + (at.end - 1) * pitch_bytes + static_cast<long long>(kRowBytes) <= end_of(given);
    return at;
  }

  /// Whether the pack at `offset` is inside the input, which ends at `end`, in bytes; at least a pack.
  static __device__ bool is_inside(long long offset, long long end) {
    return static_cast<unsigned long long>(offset) <= static_cast<unsigned long long>(end - kPackBytes);
  }

  static __device__ bool is_there(const Place& at, unsigned row) { return row - at.first < at.end - at.first; }
};

}  // namespace hone
