#include "cache/private_group.h"

#include <grp.h>
#include <pwd.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cache {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of one entry

/// Calls `read` with a larger and larger buffer until the entry fits; false where there is none.
template <class Entry, class Read>
bool read_entry(std::vector<char>& text, Entry& entry, Read read) {
  for (text.resize(4096); text.size() <= kMostBytes; text.resize(text.size() * 4)) {
    Entry* found = nullptr;
    const int error = read(&entry, text.data(), text.size(), &found);
    if (error != ERANGE) return error == 0 && found != nullptr;
  }
  return false;
}

bool has_access_list(const std::filesystem::path& path) {
  if (::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0) return true;
  return errno != ENODATA && errno != ENOTSUP;
}

/// Users that are not in this file (of a directory service) have groups of their own by the same convention.
bool is_primary_of_another(::gid_t group, ::uid_t owner) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> users(std::fopen("/etc/passwd", "re"), std::fclose);
  if (!users) return true;
  ::passwd user{};
  std::vector<char> text;
  while (read_entry(text, user, [&](auto... to) { return ::fgetpwent_r(users.get(), to...); }))
    if (user.pw_gid == group && user.pw_uid != owner) return true;
  return std::ferror(users.get()) != 0;
}

}  // namespace

bool is_private_group(const std::filesystem::path& path, ::gid_t group, ::uid_t owner) {
  ::passwd user{};
  ::group members{};
  std::vector<char> user_text, group_text;
  if (!read_entry(user_text, user, [&](auto... to) { return ::getpwuid_r(owner, to...); })) return false;
  if (!read_entry(group_text, members, [&](auto... to) { return ::getgrgid_r(group, to...); })) return false;
  const std::string_view name = user.pw_name;
  if (user.pw_gid != group || name != members.gr_name) return false;
  for (char** member = members.gr_mem; *member != nullptr; ++member)
    if (name != *member) return false;
  return !is_primary_of_another(group, owner) && !has_access_list(path);
}

}  // namespace hone::cache
