#include "cache/mount_locks.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <vector>

#include "cache/errors.h"

namespace hone::cache {
namespace {

/// Such a mount keeps fcntl() locks on the machine that takes them; without an option, any mount of the type does.
struct LocalLocks {
  std::string_view type;
  std::string_view option;
};

// nfs(5), mount.cifs(8), the Lustre Operations Manual ("Mounting a Client"). sshfs implements no locks, so that FUSE
// keeps them in the kernel (Documentation/filesystems/fuse.rst of Linux).
constexpr std::array<LocalLocks, 10> kLocalLocks{{
    {"nfs", "nolock"},
    {"nfs", "local_lock=posix"},
    {"nfs", "local_lock=all"},
    {"nfs4", "nolock"},
    {"nfs4", "local_lock=posix"},
    {"nfs4", "local_lock=all"},
    {"cifs", "nobrl"},
    {"smb3", "nobrl"},
    {"lustre", "localflock"},
    {"fuse.sshfs", ""},
}};

/// Magic numbers of statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS. No machine shares them, and mountinfo
/// of some machines has thousands of lines.
constexpr std::array<std::int64_t, 6> kOwnDisks{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1};

bool is_own_disk(const std::filesystem::path& folder) {
  struct ::statfs found {};
  return ::statfs(folder.c_str(), &found) == 0 &&
         std::ranges::find(kOwnDisks, static_cast<std::int64_t>(found.f_type)) != kOwnDisks.end();
}

bool has_option(std::string_view options, std::string_view option) {
  while (!options.empty()) {
    const std::size_t comma = std::min(options.find(','), options.size());
    if (options.substr(0, comma) == option) return true;
    options.remove_prefix(std::min(comma + 1, options.size()));
  }
  return false;
}

/// Whitespace and backslashes of mountinfo are written in octal.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 3);
    if (text[i] == '\\' && digits.size() == 3 && std::ranges::all_of(digits, is_octal)) {
      plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0'));
      i += digits.size();
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::filesystem::path nearest_folder(std::filesystem::path path) {
  std::error_code error;
  while (path.has_relative_path() && !std::filesystem::exists(path, error)) path = path.parent_path();
  return path;
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

// proc(5): "36 35 98:0 /root /mnt/point rw,options shared:1 - type source rw,options", with any number of fields before
// the dash.
std::string local_locks(std::string_view mountinfo, std::uint32_t device_major, std::uint32_t device_minor) {
  std::istringstream lines{std::string(mountinfo)};
  const std::string device = fmt::format("{}:{}", device_major, device_minor);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> fields;
    for (std::string field; stream >> field;) fields.push_back(field);
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields[2] != device || fields.end() - dash < 4) continue;
    const std::string &type = dash[1], &source = dash[2], &of_system = dash[3], &of_mount = fields[5];
    for (const LocalLocks& local : kLocalLocks) {
      const bool is_set = has_option(of_system, local.option) || has_option(of_mount, local.option);
      if (type != local.type || (!local.option.empty() && !is_set)) continue;
      const std::string with = local.option.empty() ? "" : fmt::format(" with the option '{}'", local.option);
      return fmt::format("{} is mounted on {} as {}{}, so other machines do not see locks", unescaped(source),
                         unescaped(fields[4]), type, with);
    }
  }
  return "";
}

std::string this_machine() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::filesystem::path machine_file(const std::filesystem::path& path) {
  return std::filesystem::path(path).concat(".machine");
}

std::string lock_distrust(const std::filesystem::path& path) {
  const std::filesystem::path folder = nearest_folder(path);
  struct ::stat found {};
  if (is_own_disk(folder) || ::stat(folder.c_str(), &found) != 0) return "";
  std::ostringstream mountinfo;
  mountinfo << std::ifstream("/proc/self/mountinfo").rdbuf();
  std::string why = local_locks(mountinfo.str(), major(found.st_dev), minor(found.st_dev));
  const std::string owner = why.empty() ? "" : first_line(machine_file(path));
  return !owner.empty() && owner == this_machine() ? "" : why;
}

void require_locks(const std::filesystem::path& path) {
  if (const std::string why = lock_distrust(path); !why.empty()) throw store_error(path, StoreFault::unlocked, why);
}

}  // namespace hone::cache
