// read_kernel_file(): makes a Unit of a .cu file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>

namespace hone {

/// Reads a file of CUDA source, and the files that it includes with quotes if they are in its folder or below. Messages
/// of compilers and of the host device's checks then name these files, as `path` spells them, and their lines.
/// `entries` are the kernels, like "scale" or "sum<float>"; if empty, all that global_functions() finds. Throws Error:
/// io_failed if a file cannot be read, not_found if no entries are given and none is found.
Unit read_kernel_file(const std::filesystem::path& path, std::vector<std::string> entries = {});

/// The text of a file, with a #line of its name for compilers that get it under another one. Bytes of the name that
/// NVRTC takes in UTF-8 alone, and those that end a line or a string, are octal escapes: compilers print them as they
/// are.
std::string with_place(std::string_view name, std::string_view text);

/// The names of the functions that are marked __global__, in the order of the text, each once (a function may have a
/// second version for the host device). Skips comments, and does not find functions that a macro defines.
std::vector<std::string> global_functions(std::string_view source);

/// The source with a blank in place of each comment.
std::string without_comments(std::string_view source);

}  // namespace hone
