#include "runtime/jit/source_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>

#include "runtime/jit/run_program.h"
#include "runtime/jit/compile_folder.h"

namespace hone {

std::string source_line(const std::vector<std::byte>& shared_object, std::uint64_t address) noexcept {
  try {
    const std::filesystem::path tool = find_on_path("addr2line");
    if (tool.empty()) return "";
    const CompileFolder temp;
    write_file(temp.path() / "unit.so", {reinterpret_cast<const char*>(shared_object.data()), shared_object.size()});
    const std::filesystem::path log = temp.path() / "log";
    const std::string object = (temp.path() / "unit.so").string();
    if (run_program(temp.path(), {tool.string(), "-e", object, fmt::format("{:#x}", address)}, log) != 0) return "";
    std::string line = read_file(log);
    line.erase(std::min(line.find_first_of("\n("), line.size()));  // "unit.cu:4 (discriminator 2)"
    while (line.ends_with(' ')) line.pop_back();
    while (line.starts_with("./")) line.erase(0, 2);
    return line.find('?') == std::string::npos ? line : "";
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace hone
