#include "runtime/jit/source_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "runtime/jit/compile_folder.h"
#include "runtime/jit/run_program.h"

namespace hone {
namespace {

/// The file and line of a line of addr2line, as the unit spells it; "" if it is not known or the prelude's.
std::string place_of(std::string line) {
  line.erase(std::min(line.find('('), line.size()));  // "unit.cu:4 (discriminator 2)"
  while (line.ends_with(' ')) line.pop_back();
  while (line.starts_with("./")) line.erase(0, 2);
  const bool is_known = line.find('?') == std::string::npos && line.find("prelude/") == std::string::npos;
  return is_known ? line : "";
}

}  // namespace

std::vector<std::string> source_lines(const std::vector<std::byte>& shared_object,
                                      const std::vector<std::uint64_t>& addresses) noexcept {
  try {
    std::vector<std::string> places(addresses.size());
    const std::filesystem::path tool = find_on_path("addr2line");
    if (tool.empty()) return places;
    const CompileFolder temp;
    write_file(temp.path() / "unit.so", {reinterpret_cast<const char*>(shared_object.data()), shared_object.size()});
    const std::filesystem::path log = temp.path() / "log";
    // -a repeats each address, and -i follows it with the lines that it is inlined into, from the inside.
    std::vector<std::string> command{tool.string(), "-a", "-i", "-e", (temp.path() / "unit.so").string()};
    for (const std::uint64_t address : addresses) command.push_back(fmt::format("{:#x}", address));
    if (run_program(temp.path(), command, log) != 0) return places;
    std::istringstream lines(read_file(log));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("0x"))
        ++count;
      else if (count >= 1 && count <= places.size() && places[count - 1].empty())
        places[count - 1] = place_of(line);
    }
    return places;
  } catch (const std::exception&) {
    return std::vector<std::string>(addresses.size());
  }
}

}  // namespace hone
