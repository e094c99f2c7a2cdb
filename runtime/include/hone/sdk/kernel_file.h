// read_kernel_file(): a .cu file as a Unit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// Reads a file of CUDA source, and the files that it includes with quotes as far as they lie in its folder or below.
/// What compilers and the host device's checks report then names these files, as `path` spells them, and their lines.
/// `entries` are the kernels wanted, like "scale" or "sum<float>"; when empty, all that global_functions() finds.
/// Throws Error: io_failed when a file cannot be read, not_found when no entries are given and none is found.
Unit read_kernel_file(const std::filesystem::path& path, std::vector<std::string> entries = {});

/// Names of the functions that are marked __global__, in the order of the text, each once: one may be written twice, for
/// the host device and for GPUs. Comments are not looked into; functions that macros make are not found.
std::vector<std::string> global_functions(std::string_view source);

}  // namespace hone
