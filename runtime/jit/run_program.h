// run_program(): runs a compiler or another tool, and waits. What else such tools need: files, and where they are.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hone/error.h>

namespace hone {

/// Runs `command`, whose first word is a path, in `folder` with its output in `log`, messages in English, and without
/// folders of headers from the environment. It can read what it writes, whatever the umask is. Returns its wait status.
/// Throws std::system_error when it cannot be run.
int run_program(const std::filesystem::path& folder, std::vector<std::string> command,
                const std::filesystem::path& log);

/// The path of a program that is a name on PATH or a path; empty when there is none.
std::filesystem::path find_on_path(const std::string& name);

/// Makes the folders that are missing. The owner alone has rights, whatever the umask is. Throws no_room().
void write_file(const std::filesystem::path& path, std::string_view text);

/// Error(io_failed) that names the folder and TMPDIR.
Error no_room(const std::filesystem::path& folder, std::string_view why);

/// "" when it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace hone
