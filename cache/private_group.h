// is_private_group(): tells if a group that may write to a file is only its owner under another name.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace hone::cache {

/// Many systems give every user a group of the same name, with nobody else in it, and umask 0002. True where `group` is
/// that of `owner`: it is the owner's primary group and has the owner's name, it lists no other member, no other user
/// of this machine has it as primary group, and `path` has no access list, whose entries would hide behind the group's
/// rights. False where anything of that cannot be found out. Thread-safe.
bool is_private_group(const std::filesystem::path& path, ::gid_t group, ::uid_t owner);

}  // namespace hone::cache
