// file_identity: tells one version of a compiler from another without running it.
#pragma once

#include <filesystem>
#include <string>

namespace hone {

/// "<file name of the resolved path>:<size in bytes>", for example "x86_64-linux-gnu-g++-12:1043400". Links are
/// followed first, since distributions put the version into the last file's name. "" when there is no such file.
std::string file_identity(const std::filesystem::path& path);

}  // namespace hone
