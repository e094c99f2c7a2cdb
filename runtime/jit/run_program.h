// run_program(): runs a compiler or another tool, and waits. What else such tools need: files, and where they are.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// Runs `command`, whose first word is a path, in `folder` with its output in `log`, messages in English, and without
/// folders of headers from the environment. Returns its wait status. Throws std::system_error when it cannot be run.
int run_program(const std::filesystem::path& folder, std::vector<std::string> command,
                const std::filesystem::path& log);

/// The path of a program that is a name on PATH or a path; empty when there is none.
std::filesystem::path find_on_path(const std::string& name);

/// Makes the folders that are missing. Throws Error(io_failed).
void write_file(const std::filesystem::path& path, std::string_view text);

/// "" when it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace hone
