#include "runtime/device/host/race_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/jit/elf_symbols.h"
#include "runtime/jit/source_line.h"

namespace hone {
namespace {

using hone_host::AccessKind;

constexpr std::size_t kMostReported = 3;

bool is_one_block(const hone_host::Index3& a, const hone_host::Index3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

std::string index_text(const hone_host::Index3& i) { return fmt::format("({},{},{})", i.x, i.y, i.z); }

std::string_view verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
      return "reads";
    case AccessKind::write:
      return "writes";
    case AccessKind::atomic:
      break;
  }
  return "updates atomically";
}

std::string access_text(const RacingAccess& access, const std::string& line) {
  return fmt::format("\n    {}: thread {} of block {} {}", line.empty() ? "a line that is not known" : line,
                     index_text(access.thread), index_text(access.block), verb(access.kind));
}

/// True if `later` is before `earlier` in one file, so that a loop lies between them.
bool goes_back(const std::string& earlier, const std::string& later) {
  const std::size_t colon = earlier.rfind(':');
  if (colon == std::string::npos || later.compare(0, colon + 1, earlier, 0, colon + 1) != 0) return false;
  return std::atoi(later.c_str() + colon + 1) < std::atoi(earlier.c_str() + colon + 1);
}

std::string advice(const Race& race, const std::string& earlier, const std::string& later) {
  if (!is_one_block(race.earlier.block, race.later.block))
    return "no barrier orders blocks: let each of them write elements of its own, use atomic functions on both sides, "
           "or launch a second kernel";
  if (race.earlier.kind == AccessKind::atomic || race.later.kind == AccessKind::atomic)
    return "use atomic functions on both sides, or put __syncthreads() between these two";
  if (earlier == later && race.earlier.kind == race.later.kind)
    return "let one thread alone write each element, or use an atomic function";
  if (!earlier.empty() && earlier == later)
    return "one line reads and writes: read into a variable, put __syncthreads() behind that, and write then; in a "
           "loop, put another one at the end of the round";
  if (goes_back(earlier, later))
    return "put __syncthreads() between these two: the second comes in the next round of a loop, whose end is a "
           "place for it";
  return "put __syncthreads() between these two";
}

std::string place_of(const Race& race, const std::vector<std::byte>& module,
                     const std::function<std::string(std::uintptr_t)>& describe_address) {
  if (race.smem_offset < 0) return describe_address(race.address);
  const auto offset = static_cast<std::size_t>(race.smem_offset);
  const TlsSymbol symbol = tls_symbol_at(module, offset);
  if (symbol.name.empty()) return fmt::format("byte {} of shared memory", offset);
  return fmt::format("byte {} of \"{}\" in shared memory", offset - symbol.begin, symbol.name);
}

}  // namespace

std::string describe_races(const std::vector<Race>& races, const std::vector<std::byte>& module,
                           const std::function<std::string(std::uintptr_t)>& describe_address) {
  std::vector<std::uint64_t> addresses;
  for (const Race& race : races)
    for (const RacingAccess* access : {&race.earlier, &race.later})
      addresses.push_back(access->code_address - 1);  // within the call, which may be the last code of its line
  const std::vector<std::string> lines = source_lines(module, addresses);
  std::set<std::pair<std::string, std::string>> reported;
  std::string text;
  for (std::size_t i = 0; i < races.size() && reported.size() < kMostReported; ++i) {
    const std::string &earlier = lines[2 * i], &later = lines[2 * i + 1];
    if (!reported.emplace(earlier, later).second) continue;
    text += fmt::format("\n  a race: nothing orders these two accesses of {}{}{}\n  {}",
                        place_of(races[i], module, describe_address), access_text(races[i].earlier, earlier),
                        access_text(races[i].later, later), advice(races[i], earlier, later));
  }
  if (!lines.empty() && std::ranges::all_of(lines, &std::string::empty))
    text += "\n  install binutils: its addr2line finds the lines";
  return text;
}

}  // namespace hone
