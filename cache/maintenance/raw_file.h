// RawFile: the bytes of a cache file that SQLite may not be able to read, under SQLite's own locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct sqlite3_file;

namespace hone::cache {

/// Opened through SQLite's layer for the operating system. That keeps writers out by the locks that they know, and does
/// not drop the locks that the process holds elsewhere, as closing a descriptor of our own would.
///
/// Not movable, used by one thread. Every method throws StoreError.
class RawFile {
 public:
  /// Throws StoreError(unopenable).
  explicit RawFile(const std::filesystem::path& path);
  ~RawFile();

  /// Keeps every reader and writer out until destruction. Waits up to 5 s for them, then throws StoreError(busy).
  void lock_exclusively();

  std::int64_t size_bytes() const;

  /// Fills `bytes` from `offset` on. False where the medium does not give them all; then the rest is zero.
  bool read(std::int64_t offset, std::span<std::byte> bytes) const;

 private:
  struct Closer {
    void operator()(sqlite3_file* file) const noexcept;
  };

  std::filesystem::path path_;
  std::unique_ptr<char, void (*)(char*)> name_;  ///< as SQLite wants it, alive as long as the file is open
  std::unique_ptr<sqlite3_file, Closer> file_;
  int lock_ = 0;
};

}  // namespace hone::cache
