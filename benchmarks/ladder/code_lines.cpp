#include "benchmarks/ladder/code_lines.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

namespace hone::benchmarks {
namespace {

int count(const Unit& unit, const std::string& text, std::set<std::string>& counted) {
  int lines = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, 2, "//") == 0) continue;
    if (line[begin] != '#') {
      ++lines;
      continue;
    }
    const std::size_t quote = line.find('"');
    if (line.find("include") == std::string::npos || quote == std::string::npos) continue;
    const std::string name = line.substr(quote + 1, line.rfind('"') - quote - 1);
    const auto file = std::find_if(unit.headers.begin(), unit.headers.end(),
                                   [&](const SourceFile& header) { return header.name == name; });
    if (file != unit.headers.end() && counted.insert(name).second) lines += count(unit, file->text, counted);
  }
  return lines;
}

}  // namespace

int code_lines(const Unit& unit) {
  std::set<std::string> counted;
  return count(unit, unit.source, counted);
}

}  // namespace hone::benchmarks
