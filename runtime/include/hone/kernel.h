// Unit, Binary, Module, Kernel and Launch: a kernel, from its source to its launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace hone {

/// A file of kernel source. `name` is the name by which `#include "…"` finds it.
struct SourceFile {
  std::string name;
  std::string text;
};

/// A unit of compilation: usually a few generated lines that instantiate a template for one Policy.
struct Unit {
  std::string name;                  ///< for messages; empty: "reduce sum f32 n≈1024 block_threads=256 …"
  std::string source;                ///< defines or includes the kernels
  std::vector<SourceFile> headers;   ///< the files that `source` may include

  /// The kernels, as expressions that name a __global__ function at the end of the source, such as "scale" or
  /// "hone::transpose<Kernel>". Naming a template here instantiates it. Launch::entry is an index into this list.
  std::vector<std::string> entries;

  /// Folders in which `#include <…>` finds files, such as GpuCompiler::include_folders(). Usually none: a winner must
  /// compile on machines that have no headers of CUDA.
  std::vector<std::string> include_folders = {};

  /// True if both compile to the same kernels.
  bool has_code_of(const Unit& other) const {
    return source == other.source && entries == other.entries && include_folders == other.include_folders;
  }
};

/// A compiled Unit, as it is stored beside its winner.
struct Binary {
  std::string format;        ///< "cubin" or "elf"
  std::string architecture;  ///< DeviceFacts::architecture of the device that can load it
  std::vector<std::byte> code;
  std::vector<std::string> entries = {};  ///< the kernels' symbols, in the order of Unit::entries; empty: the same
};

/// The resources that a compiled kernel needs, as the device reports them.
struct Resources {
  int registers = 0;           ///< per thread; 0 on the host
  int static_smem_bytes = 0;   ///< per block
  int local_bytes = 0;         ///< local memory per thread: stack and spilled registers
  int max_threads_per_block = 1024;

  bool operator==(const Resources&) const = default;
};

/// A kernel inside a loaded Module; valid as long as the Module lives.
struct Kernel {
  const void* handle = nullptr;    ///< cudaKernel_t, or the host device's entry
  const void* function = nullptr;  ///< what else the device that loaded it keeps for its launches
  Resources resources;
  std::optional<std::vector<int>> parameter_bytes = {};  ///< the size of each parameter, where the code tells
};

/// A loaded Binary, owned by the caller of Device::load(). Destroying it unloads the code, so no launch of it may be
/// pending then. Immutable, hence thread-safe.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// The kernel at `entry` in Unit::entries.
  virtual const Kernel& kernel(int entry) const = 0;
};

/// The arguments of one launch, stored inline so that a launch allocates nothing.
class Arguments {
 public:
  static constexpr int kCapacity = 12;
  static constexpr std::size_t kBytes = 160;  ///< the most bytes of all parameters together

  /// Appends the next kernel parameter: a pointer, a scalar, or a struct that host and device share. Throws
  /// Error(invalid_argument) beyond kCapacity parameters or kBytes.
  template <class T>
  void push(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment && sizeof(T) <= kBytes);
    const std::size_t offset = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    if (count_ == kCapacity || offset + sizeof(T) > kBytes) [[unlikely]] throw_too_many();
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
    offsets_[static_cast<std::size_t>(count_)] = static_cast<std::uint8_t>(offset);
    sizes_[static_cast<std::size_t>(count_)] = static_cast<std::uint8_t>(sizeof(T));
    ++count_;
    used_ = offset + sizeof(T);
  }

  int count() const { return count_; }

  /// The value of parameter `index`, aligned for its type.
  const void* value(int index) const { return bytes_.data() + offsets_[static_cast<std::size_t>(index)]; }
  int bytes(int index) const { return sizes_[static_cast<std::size_t>(index)]; }

 private:
  [[noreturn]] static void throw_too_many();

  static constexpr std::size_t kAlignment = 8;
  alignas(kAlignment) std::array<std::byte, kBytes> bytes_;
  std::array<std::uint8_t, kCapacity> offsets_, sizes_;
  std::size_t used_ = 0;
  int count_ = 0;
};

/// Three extents of a grid or block.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// One kernel launch.
struct Launch {
  int entry = 0;  ///< the kernel, as an index into Unit::entries
  Dim3 grid;
  Dim3 block;
  std::uint32_t dynamic_smem_bytes = 0;

  /// Programmatic dependent launch (PDL): blocks may start while the launch ahead in the stream, whoever made it, still
  /// runs. The kernel must execute griddepcontrol.wait before it reads or writes anything that an earlier launch may
  /// use. Without DeviceFacts::has_dependent_launch, and in a graph behind other work, this is an ordinary launch.
  bool dependent_launch = false;

  /// The number of blocks of a thread-block cluster, along x; grid.x must be a multiple of it. A launch with more than
  /// DeviceFacts::max_cluster_blocks fails.
  unsigned cluster_blocks = 1;

  /// Cooperative launch: all blocks are resident at once, so that they may wait for each other. Where the device has no
  /// room for all of them, Device::launch() throws NotResident. It never overlaps the launch ahead.
  bool cooperative = false;

  Arguments arguments;
};

/// The launches of one call, in stream order. The capacity is fixed, since the list is filled on every hit.
class LaunchList {
 public:
  static constexpr int kCapacity = 3;

  /// Appends an empty launch, for the caller to fill in. Throws Error(invalid_argument) beyond kCapacity.
  Launch& add() {
    if (count_ == kCapacity) [[unlikely]] throw_too_many();
    return launches_[static_cast<std::size_t>(count_++)];
  }
  const Launch* begin() const { return launches_.data(); }
  const Launch* end() const { return launches_.data() + count_; }

 private:
  [[noreturn]] static void throw_too_many();

  std::array<Launch, kCapacity> launches_;
  int count_ = 0;
};

}  // namespace hone
