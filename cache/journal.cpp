#include "cache/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "cache/descriptor.h"
#include "cache/errors.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kSuffixes{"-journal", "-wal", "-shm"};
constexpr std::array<unsigned char, 8> kMagic{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr ::off_t kTrailerBytes = 16;  ///< length, checksum and magic number behind a super-journal's name

/// The bytes at `offset`; fewer where the file ends before.
template <std::size_t kCount>
std::optional<std::array<unsigned char, kCount>> read_at(int descriptor, ::off_t offset) {
  std::array<unsigned char, kCount> bytes{};
  if (::pread(descriptor, bytes.data(), kCount, offset) != static_cast<::ssize_t>(kCount)) return std::nullopt;
  return bytes;
}

bool ends_in_super_journal(int descriptor, ::off_t size) {
  if (size < kTrailerBytes) return false;
  const auto trailer = read_at<kTrailerBytes>(descriptor, size - kTrailerBytes);
  if (!trailer) return false;
  const bool has_length = (*trailer)[0] != 0 || (*trailer)[1] != 0 || (*trailer)[2] != 0 || (*trailer)[3] != 0;
  return has_length && std::equal(kMagic.begin(), kMagic.end(), trailer->begin() + 8);
}

}  // namespace

bool has_hot_journal(const fs::path& file) {
  for (const std::string_view suffix : kSuffixes) {
    const std::string name = file.native() + std::string(suffix);
    struct ::stat facts {};
    if (::lstat(name.c_str(), &facts) != 0) continue;
    if (!S_ISREG(facts.st_mode))
      throw store_error(file, StoreFault::unopenable,
                        fmt::format("{} beside it is no regular file; remove that one first", name));
  }

  const std::string name = file.native() + std::string(kSuffixes[0]);
  const Descriptor journal(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (journal.number() < 0) {
    if (errno == ENOENT) return false;
    throw store_error(file, StoreFault::unopenable,
                      fmt::format("its journal {}: {}", name, std::generic_category().message(errno)));
  }
  struct ::stat facts {};
  if (::fstat(journal.number(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;  // gone, or changed meanwhile
  if (ends_in_super_journal(journal.number(), facts.st_size))
    throw store_error(file, StoreFault::unopenable,
                      fmt::format("its journal {} names a further file, which undoing the interrupted write would "
                                  "delete; Hone writes no such journal: move it away",
                                  name));
  const auto first = read_at<1>(journal.number(), 0);
  return first && (*first)[0] != 0;  // a journal that is done with may have been kept with its header cleared
}

}  // namespace hone::cache
