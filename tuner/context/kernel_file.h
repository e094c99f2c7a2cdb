// KernelFile: the kernel of a .cu file that the command line means.
#pragma once

#include <filesystem>
#include <string>

#include <hone/kernel.h>

namespace hone::tuner {

/// The file as a unit whose one entry is `entry`, or the only kernel of the file when `entry` is "". Throws
/// Error(io_failed) when the file cannot be read and CommandError(usage) when the kernel is not there or not clear.
Unit read_one_kernel(const std::filesystem::path& path, const std::string& entry);

}  // namespace hone::tuner
