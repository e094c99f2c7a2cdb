// KernelFile: a .cu file as a Unit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone::tuner {

/// Names of the functions that are marked __global__, in the order of the text. Comments are not looked into.
std::vector<std::string> global_functions(std::string_view source);

/// Reads a file and the files that it includes with quotes, as far as they lie in its folder. `entry` is the kernel to
/// look at; "" when the file has just one. Throws Error(io_failed) when the file cannot be read and
/// CommandError(usage) when the kernel is not there or not clear.
Unit read_kernel_file(const std::filesystem::path& path, const std::string& entry);

}  // namespace hone::tuner
