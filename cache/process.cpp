#include "cache/process.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace hone::cache {
namespace {

/// Fields of /proc/<pid>/stat after the name, which may hold anything: proc(5) calls these 3 and 22.
constexpr int kStateField = 0;
constexpr int kStartField = 19;

/// Ticks from boot to the start of a process; "" when there is none, or when it is dead and only waits to be reaped.
std::string start_time(std::string_view pid) {
  std::ifstream file("/proc/" + std::string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int index = kStateField; fields >> field; ++index) {
    if (index == kStateField && (field == "Z" || field == "X")) return "";
    if (index == kStartField) return field;
  }
  return "";
}

/// Returns what makes a PID meaningful: the boot and the PID namespace. "" when the system does not tell.
std::string here() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", error).native();
  return boot.empty() || error ? "" : boot + " " + space;
}

}  // namespace

std::string this_process() {
  const std::string pid = std::to_string(::getpid());
  return here() + " " + pid + " " + start_time(pid);
}

bool has_ended(std::string_view process) {
  std::array<std::string, 4> words;
  std::istringstream stream{std::string(process)};
  for (std::string& word : words) stream >> word;
  const auto& [boot, space, pid, start] = words;
  if (start.empty() || pid.find_first_not_of("0123456789") != std::string::npos) return false;
  return boot + " " + space == here() && start_time(pid) != start;
}

}  // namespace hone::cache
