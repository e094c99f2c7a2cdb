// lock_distrust(): whether the locks of files on a mounted file system keep other machines out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hone::cache {

/// Why other machines do not see locks that are taken here in a file system, by the text of /proc/self/mountinfo:
/// "server:/home is mounted on /home as nfs with the option 'nolock', so other machines do not see locks". "": they do,
/// as far as mount options tell, or the device is in no line.
std::string local_locks(std::string_view mountinfo, std::uint32_t device_major, std::uint32_t device_minor);

/// The same for the file system of a cache file, or of its nearest folder that exists. "" too where the file beside it
/// that machine_file() names holds the name of this machine: then nobody else writes to it.
std::string lock_distrust(const std::filesystem::path& path);

/// Throws StoreError(unlocked) with the reason for it.
void require_locks(const std::filesystem::path& path);

/// The host name of this machine.
std::string this_machine();

/// `<cache file>.machine`: the host name of the one machine that uses the cache file.
std::filesystem::path machine_file(const std::filesystem::path& path);

}  // namespace hone::cache
