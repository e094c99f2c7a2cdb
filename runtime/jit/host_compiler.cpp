#include "runtime/jit/host_compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include <hone/error.h>

#include "runtime/jit/elf_symbols.h"
#include "runtime/jit/embedded_sources.h"
#include "runtime/jit/file_identity.h"
#include "runtime/jit/unsupported_features.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnitFile = "unit.cu";
constexpr std::string_view kSmemSymbol = "hone_host_dynamic_smem";
constexpr std::size_t kDynamicSmemBytes = 48 * 1024;
constexpr std::size_t kMaxLogBytes = 64 * 1024;

/// A private folder, removed with everything in it.
class TempFolder {
 public:
  TempFolder() {
    std::error_code failure;
    fs::path parent = fs::temp_directory_path(failure);  // $TMPDIR or /tmp
    if (failure) parent = "/tmp";
    std::string pattern = (parent / "hone-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Error(ErrorCode::io_failed, fmt::format("cannot make a folder for compiling, {}: {}; set TMPDIR to a place "
                                                    "that can be written", pattern, std::strerror(errno)));
    }
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void write_file(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw Error(ErrorCode::io_failed, fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::byte> read_bytes(const fs::path& path) {
  const std::string text = read_file(path);
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

fs::path find_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? fs::absolute(name) : fs::path();
  }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (candidate.is_absolute() && access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return {};
}

/// A file name that stays inside the folder it is written to.
void check_header_name(const std::string& name) {
  const fs::path path = name;
  bool leaves = path.is_absolute() || path.empty();
  for (const fs::path& part : path) leaves = leaves || part == "..";
  if (leaves) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("header name \"{}\": a unit's headers need relative names without \"..\"", name));
  }
}

/// `text` as C++ source.
std::string string_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + '"';
}

/// What follows the unit's source: how the engine finds its kernels (prelude/host_abi.h).
std::string trampolines(const Unit& unit) {
  std::string text = "\n#line 1 \"hone_entries\"\nnamespace hone_host {\nconstexpr Entry kEntries[] = {\n";
  for (const std::string& entry : unit.entries) {
    text += fmt::format("    {{{0}, &Trampoline<&::{1}>::call, Trampoline<&::{1}>::kParameters}},\n",
                        string_literal(entry), entry);
  }
  text += fmt::format(
      "}};\nextern \"C\" {{\nextern thread_local unsigned char {0}[];\n"
      "extern const unsigned long long {0}_bytes;\n"
      "[[gnu::visibility(\"default\")]] extern const ModuleDescriptor hone_host_module = {{\n"
      "    kAbiVersion, {1}, kEntries, {2}, +[]() -> unsigned char* {{ return {0}; }}, &{0}_bytes}};\n}}\n}}\n",
      kSmemSymbol, string_literal(unit.name), unit.entries.size());
  return text;
}

/// Defines dynamic shared memory: every `extern __shared__` array of the unit is the same memory, as in CUDA. It is
/// linked last, so that it ends the thread-local segment.
std::string dynamic_smem_assembly(const std::vector<std::string>& names) {
  const std::size_t bytes = names.empty() ? 1 : kDynamicSmemBytes;
  std::string text = fmt::format(".section .tbss,\"awT\",%nobits\n.balign {}\n", names.empty() ? 1 : 128);
  const auto define = [&text](std::string_view name) {
    text += fmt::format(".globl {0}\n.hidden {0}\n.type {0},%object\n{0}:\n", name);
  };
  define(kSmemSymbol);
  for (const std::string& name : names) define(name);
  text += fmt::format(".zero {0}\n.section .rodata\n.balign 8\n.globl {1}_bytes\n.hidden {1}_bytes\n{1}_bytes:\n"
                      ".quad {0}\n.section .note.GNU-stack,\"\",%progbits\n", bytes, kSmemSymbol);
  return text;
}

std::vector<std::string> compile_options() {
  std::vector<std::string> options{
      "-x", "c++", "-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
      // Kernels load 16 bytes of any type at once, which CUDA compilers allow.
      "-fno-strict-aliasing",
      // a * b + c is the same on every machine, and __fmul_rn() rounds.
      "-ffp-contract=off",
      // A lane's stack is 64 KiB, and no frame may step over the guard page below it.
      "-fstack-clash-protection",
      "-Werror=frame-larger-than=40960", "-Wframe-larger-than=40960"};
  constexpr std::string_view kSanitizers = HONE_SANITIZERS;
  // -O3 unrolls the loops over packs, which -O2 of g++ keeps in memory: twice as fast, and still more where each access
  // is checked. ThreadSanitizer gains nothing from it.
  options.emplace_back(kSanitizers == "thread" ? "-O2" : "-O3");
  if (!kSanitizers.empty()) {
    options.insert(options.end(), {"-g1", "-fno-omit-frame-pointer", "-fsanitize=" HONE_SANITIZERS,
                                   "-fno-sanitize=vptr", "-fno-sanitize-recover=undefined",
                                   // Poisoning each loop's locals keeps packs in memory: the sum is 3 times slower.
                                   "-fno-sanitize-address-use-after-scope"});
  }
  return options;
}

std::vector<std::string> link_options() {
  if (!std::string_view(HONE_SANITIZERS).empty()) return {"-shared", "-fsanitize=" HONE_SANITIZERS};
  return {"-shared", "-nostdlib", "-Wl,-z,defs"};
}

/// The environment with messages in English, so that logs are the same everywhere, and without folders of headers:
/// those of a CUDA toolkit are for nvcc.
std::vector<std::string> compiler_environment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable, name = text.substr(0, text.find('='));
    if (name != "LC_ALL" && name != "CPATH" && name != "C_INCLUDE_PATH" && name != "CPLUS_INCLUDE_PATH")
      result.emplace_back(text);
  }
  result.emplace_back("LC_ALL=C");
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// posix_spawn's list of what the child does with its files first.
class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// Runs a command in `folder` with its output in `log`, and waits. Returns its wait status.
int run(const fs::path& folder, std::vector<std::string> command, const fs::path& log) {
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(actions.get(), STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(actions.get(), folder.c_str());
  std::vector<std::string> environment = compiler_environment();
  pid_t child = 0;
  const int failure = posix_spawn(&child, command.front().c_str(), actions.get(), nullptr, pointers(command).data(),
                                  pointers(environment).data());
  if (failure != 0) {
    throw Error(ErrorCode::unsupported, fmt::format("cannot run the C++ compiler {}: {}; set HONE_CXX to one that runs",
                                                    command.front(), std::strerror(failure)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    throw Error(ErrorCode::compile_failed,
                fmt::format("waiting for the C++ compiler {}: {}", command.front(), std::strerror(errno)));
  }
  return status;
}

/// Whether a linker's log says that a sanitizer's library is missing: GNU's, LLVM's and gold's words for it.
bool lacks_sanitizer_runtime(std::string_view log) {
  for (const std::string_view library :
       {"-lasan", "-ltsan", "-lubsan", "libasan", "libtsan", "libubsan", "libclang_rt."}) {
    const std::size_t at = log.find(library);
    if (at == std::string_view::npos) continue;
    const std::string_view line = log.substr(0, log.find('\n', at)).substr(log.rfind('\n', at) + 1);
    if (line.find("cannot find") != std::string_view::npos || line.find("unable to find") != std::string_view::npos ||
        line.find("No such file") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

void run_or_throw(const Unit& unit, const fs::path& folder, const std::vector<std::string>& command) {
  const fs::path log = folder.parent_path() / "log";
  const int status = run(folder, command, log);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::string text = read_file(log);
  if (text.size() > kMaxLogBytes) text.replace(kMaxLogBytes, std::string::npos, "\n[…]");
  if (lacks_sanitizer_runtime(text)) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the C++ compiler {} lacks the library of a sanitizer that this build of Hone runs kernels "
                    "under ({}); install it (Debian and Ubuntu: it comes with apt-get install g++, or "
                    "libclang-rt-dev for clang++; Fedora: dnf install libasan libubsan libtsan) or set HONE_CXX "
                    "to the compiler that Hone was built with\n{}",
                    command.front(), HONE_SANITIZERS, text));
  }
  const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("exited with {}", WEXITSTATUS(status));
  std::string why = unsupported_feature(text);
  if (!why.empty()) why.insert(0, ": ");
  throw Error(ErrorCode::compile_failed,
              fmt::format("the kernel \"{}\" did not compile for the host device{}\n{}\n{}\n{}", unit.name, why,
                          fmt::join(command, " "), how, text));
}

}  // namespace

HostCompiler::HostCompiler(const std::string& requested, std::string architecture)
    : requested_(requested), architecture_(std::move(architecture)) {
  static constexpr std::array<std::string_view, 3> kUsual{"c++", "g++", "clang++"};
  if (!requested.empty()) compiler_ = find_on_path(requested);
  for (std::size_t i = 0; requested.empty() && compiler_.empty() && i < kUsual.size(); ++i) {
    compiler_ = find_on_path(std::string(kUsual[i]));
  }
}

std::string HostCompiler::identity() const {
  const std::string file = compiler_.empty() ? std::string() : file_identity(compiler_);
  if (file.empty() || std::string_view(HONE_SANITIZERS).empty()) return file;
  return file + "+" HONE_SANITIZERS;
}

Binary HostCompiler::compile(const Unit& unit) const {
  if (compiler_.empty()) {
    throw Error(ErrorCode::unsupported,
                requested_.empty()
                    ? "the host device needs a C++20 compiler, and there is no c++, g++ or clang++ on PATH; install "
                      "one (Debian and Ubuntu: apt-get install g++) or set HONE_CXX to its path"
                    : fmt::format("the host device was told to compile with \"{}\", which is no executable file; set "
                                  "HONE_CXX to a C++20 compiler (Debian and Ubuntu: apt-get install g++)", requested_));
  }
  const TempFolder temp;
  const fs::path folder = temp.path() / "unit";
  for (const SourceFile& file : embedded::host_prelude()) write_file(temp.path() / "prelude" / file.name, file.text);
  for (const SourceFile& file : unit.headers) {
    check_header_name(file.name);
    write_file(folder / file.name, without_cuda_headers(file.text));
  }
  write_file(folder / kUnitFile, without_cuda_headers(unit.source) + trampolines(unit));

  std::vector<std::string> command{compiler_.string()};
  const auto append = [&command](const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
  };
  append(compile_options());
  command.push_back("-ffile-prefix-map=" + folder.string() + "=.");  // reports name the unit's files, not the folder
  append({"-I.", "-include", "../prelude/cuda_on_host.h", "-c", std::string(kUnitFile), "-o", "../unit.o"});
  run_or_throw(unit, folder, command);

  const std::vector<std::byte> object = read_bytes(temp.path() / "unit.o");
  std::vector<std::string> dynamic_names = undefined_tls_symbols(object);
  std::erase(dynamic_names, kSmemSymbol);
  write_file(temp.path() / "smem.s", dynamic_smem_assembly(dynamic_names));
  command = {compiler_.string()};
  append(link_options());
  append({"../unit.o", "../smem.s", "-lm", "-lc", "-lgcc", "-o", "../unit.so"});
  run_or_throw(unit, folder, command);
  return {"elf", architecture_, read_bytes(temp.path() / "unit.so")};
}

}  // namespace hone
