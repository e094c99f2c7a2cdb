// share_folders(): where the files are that are installed beside the library.
#pragma once

#include <filesystem>
#include <vector>

namespace hone {

/// The existing folders `share/hone` beside the file of this library, or of the program that it is linked into, at most
/// two folders above it: of an installed prefix, a Python package, or a folder of a build. None if that file is not
/// known. No environment variable is read.
std::vector<std::filesystem::path> share_folders();

}  // namespace hone
