// Document: what a JSON or TOML file says, with the line and column of everything in it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tuner/text/command_error.h"

namespace hone::tuner {

/// Both from 1; columns count characters.
struct FilePosition {
  int line = 1;
  int column = 1;
};

struct FileField;

struct FileValue {
  FilePosition at;
  std::variant<std::string, double, bool, std::vector<FileValue>, std::vector<FileField>> content = {};
};

struct FileField {
  std::string name;
  FilePosition at;
  FileValue value;
};

using FileTable = std::vector<FileField>;
using FileList = std::vector<FileValue>;

enum class FileFormat { json, toml };

/// "a text", "a number", "true or false", "a list", "a table": for messages.
std::string_view kind_of(const FileValue& value);

/// "name:7:3: message", as compilers write it; ExitCode::input.
CommandError error_at(std::string_view name, FilePosition at, std::string_view message);

/// Throws error_at() where the text is malformed, where a field is there twice, where more than 32 lists and tables lie
/// in each other, for integers that a double does not have, and for what no file has a use for (null, dates). TOML that
/// this build cannot read throws CommandError(input), too. The result is a table.
FileTable read_document(std::string_view text, FileFormat format, std::string_view name);

}  // namespace hone::tuner
