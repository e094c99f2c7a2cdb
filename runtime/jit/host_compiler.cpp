#include "runtime/jit/host_compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include <hone/error.h>

#include "runtime/jit/elf_symbols.h"
#include "runtime/jit/embedded_sources.h"
#include "runtime/jit/file_identity.h"
#include "runtime/jit/run_program.h"
#include "runtime/jit/compile_folder.h"
#include "runtime/jit/unsupported_features.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnitFile = "unit.cu";
constexpr std::string_view kSmemSymbol = "hone_host_dynamic_smem";
constexpr std::string_view kNameSymbol = "hone_host_unit_name";
constexpr std::size_t kDynamicSmemBytes = 48 * 1024;
constexpr std::size_t kMaxLogBytes = 64 * 1024;

/// Less than what a compiler writes for the smallest kernel.
constexpr std::uintmax_t kLeastRoomBytes = 64 * 1024;

std::vector<std::byte> read_bytes(const fs::path& path) {
  const std::string text = read_file(path);
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
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

/// `text` as C++ and assembly source.
std::string string_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + '"';
}

/// Returns what follows the unit's source: how the engine finds its kernels (prelude/host_abi.h). The unit's name is
/// linked, so that problems whose kernels are the same compile the same text, which a compiler cache then finds.
std::string trampolines(const Unit& unit) {
  std::string text = "\n#line 1 \"hone_entries\"\nnamespace hone_host {\nconstexpr Entry kEntries[] = {\n";
  for (const std::string& entry : unit.entries) {
    text += fmt::format("    {{{0}, &Trampoline<&::{1}>::call, Trampoline<&::{1}>::kParameters,\n"
                        "     Trampoline<&::{1}>::kParameterBytes}},\n",
                        string_literal(entry), entry);
  }
  text += fmt::format(
      "}};\nextern \"C\" {{\nextern thread_local unsigned char {0}[];\n"
      "extern const unsigned long long {0}_bytes;\nextern const char {1}[];\n"
      "[[gnu::visibility(\"default\")]] extern const ModuleDescriptor hone_host_module = {{\n"
      "    kAbiVersion, {1}, kEntries, {2}, +[]() -> unsigned char* {{ return {0}; }}, &{0}_bytes}};\n}}\n}}\n",
      kSmemSymbol, kNameSymbol, unit.entries.size());
  return text;
}

/// The symbol of the function that initialises a thread-local variable (Itanium C++ ABI, 5.1.6).
std::string initialiser_of(std::string_view variable) {
  return variable.starts_with("_Z") ? fmt::format("_ZTH{}", variable.substr(2))
                                    : fmt::format("_ZTH{}{}", variable.size(), variable);
}

/// Defines the unit's name, and dynamic shared memory: every `extern __shared__` array of the unit is the same memory,
/// as in CUDA. It is linked last, so that it ends the thread-local segment. An array that a function template declares
/// is initialised by a function, which g++ 12 calls though it is weak and not there; it has nothing to do.
std::string linked_assembly(const Unit& unit, const std::vector<std::string>& names) {
  const std::size_t bytes = names.empty() ? 1 : kDynamicSmemBytes;
  std::string text = fmt::format(".section .tbss,\"awT\",%nobits\n.balign {}\n", names.empty() ? 1 : 128);
  const auto define = [&text](std::string_view name) {
    text += fmt::format(".globl {0}\n.hidden {0}\n.type {0},%object\n{0}:\n", name);
  };
  define(kSmemSymbol);
  for (const std::string& name : names) define(name);
  text += fmt::format(".zero {}\n.text\n", bytes);
  for (const std::string& name : names)
    text += fmt::format(".globl {0}\n.hidden {0}\n.type {0},%function\n{0}:\nret\n", initialiser_of(name));
  text += fmt::format(".section .rodata\n.balign 8\n.globl {1}_bytes\n.hidden {1}_bytes\n{1}_bytes:\n"
                      ".quad {0}\n.globl {2}\n.hidden {2}\n{2}:\n.asciz {3}\n"
                      ".section .note.GNU-stack,\"\",%progbits\n",
                      bytes, kSmemSymbol, kNameSymbol, string_literal(unit.name));
  return text;
}

/// The sanitizers that a module is compiled with: those of the library, or none.
std::string_view sanitizers_of(HostInstrumentation instrumentation) {
  return instrumentation == HostInstrumentation::traced ? std::string_view() : HONE_SANITIZERS;
}

bool reports_to_engine(HostInstrumentation instrumentation) {
  return instrumentation != HostInstrumentation::none && sanitizers_of(instrumentation).empty();
}

/// The options by which a compiler makes code report to the engine.
std::vector<std::string> report_options(HostInstrumentation instrumentation, bool is_clang) {
  const std::string undefined =
      "-fsanitize=signed-integer-overflow,shift-exponent,float-cast-overflow,return,unreachable,";
  if (instrumentation == HostInstrumentation::checked && is_clang) return {"-g1", undefined + "array-bounds"};
  // GCC would put a trap that belongs to no line in the place of a division by a constant 0, and leave out a call of
  // what has no effect but an undefined one. What its DWARF 5 says of the first function of a unit is read by addr2line
  // as a line of "unit.cu", whatever #line says.
  if (instrumentation == HostInstrumentation::checked)
    return {"-g", "-gdwarf-4", undefined + "bounds", "-fno-isolate-erroneous-paths-dereference", "-fno-ipa-pure-const"};
  // clang leaves out the read of `x += 1`, which has to be known of an update that is lost.
  if (is_clang) return {"-g1", "-fsanitize=thread", "-mllvm", "-tsan-instrument-read-before-write=1"};
  return {"-g1", "-fsanitize=thread"};
}

std::vector<std::string> compile_options(HostInstrumentation instrumentation, bool is_clang) {
  std::vector<std::string> options{
      "-x", "c++", "-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
      // Kernels load 16 bytes of any type at once, which CUDA compilers allow.
      "-fno-strict-aliasing",
      // A loop that waits for what nobody writes stays one, and is found, where C++ lets it be left out.
      "-fno-finite-loops",
      // An access through a null pointer stays one, and is found, where a compiler would leave out what comes to it.
      "-fno-delete-null-pointer-checks",
      // a * b + c is the same on every machine, and __fmul_rn() rounds.
      "-ffp-contract=off",
      // A lane's stack is 64 KiB, and no frame may step over the guard page below it.
      "-fstack-clash-protection",
      "-Werror=frame-larger-than=40960", "-Wframe-larger-than=40960"};
  const std::string_view sanitizers = sanitizers_of(instrumentation);
  const bool is_traced = instrumentation == HostInstrumentation::traced;
  // -O3 unrolls the loops over packs, which -O2 of g++ keeps in memory: twice as fast. Traced code keeps the accesses
  // and the lines of its source. Checked code keeps the line of a loop without a body, which -O1 of g++ loses even with
  // -g; -Og also compiles faster than a small check gains by -O3 (four policies of axpy: 6.8 s of processor time
  // instead of 8.0, g++ 12.2, 26 November 2026). Under a sanitizer, too, the compiler takes longer than the kernels:
  // -O1 compiles a sum in 0.65 s, -O3 in 1.46 s (g++ 12.2, AddressSanitizer, 25 November 2026).
  const bool is_checked = instrumentation == HostInstrumentation::checked;
  options.emplace_back(is_traced || !sanitizers.empty() ? "-O1" : is_checked ? "-Og" : "-O3");
  if (reports_to_engine(instrumentation))
    for (std::string& option : report_options(instrumentation, is_clang)) options.push_back(std::move(option));
  if (!sanitizers.empty()) {
    options.insert(options.end(), {"-g1", "-fno-omit-frame-pointer", "-fsanitize=" HONE_SANITIZERS,
                                   "-fno-sanitize=vptr", "-fno-sanitize-recover=undefined",
                                   // Poisoning each loop's locals keeps packs in memory: the sum is 3 times slower.
                                   "-fno-sanitize-address-use-after-scope"});
  }
  return options;
}

std::vector<std::string> link_options(HostInstrumentation instrumentation) {
  if (!sanitizers_of(instrumentation).empty()) return {"-shared", "-fsanitize=" HONE_SANITIZERS};
  return {"-shared", "-nostdlib", "-Wl,-z,defs"};
}

/// True if a linker's log says that a sanitizer's library is missing: GNU's, LLVM's and gold's words for it.
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

/// The words by which a compiler, an assembler or a linker says that its files cannot be written; "" if none did. On a
/// full disk there may be no room for the log either.
std::string_view lack_of_room(std::string_view log, const fs::path& folder) {
  for (const std::string_view words : {"No space left on device", "Disk quota exceeded", "File too large",
                                       "File size limit exceeded", "Read-only file system"})
    if (log.find(words) != std::string_view::npos) return words;
  std::error_code error;
  const bool is_full = log.empty() && fs::space(folder, error).available < kLeastRoomBytes && !error;
  return is_full ? "No space left on device" : "";
}

void run_or_throw(const Unit& unit, const fs::path& folder, const std::vector<std::string>& command) {
  const fs::path log = folder.parent_path() / "log";
  int status = 0;
  try {
    status = run_program(folder, command, log);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_space_on_device) throw no_room(folder.parent_path(), error.code().message());
    throw Error(ErrorCode::unsupported, fmt::format("cannot run the C++ compiler {}: {}; set HONE_CXX to one that runs",
                                                    command.front(), error.code().message()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::string text = read_file(log);
  if (text.size() > kMaxLogBytes) text.replace(kMaxLogBytes, std::string::npos, "\n[…]");
  if (const std::string_view why = lack_of_room(text, folder); !why.empty()) throw no_room(folder.parent_path(), why);
  if (lacks_sanitizer_runtime(text)) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the C++ compiler {} lacks the library of a sanitizer that this build of Hone runs kernels "
                    "under ({}); install it (Debian and Ubuntu: it comes with apt-get install g++, or "
                    "libclang-rt-dev for clang++; Fedora: dnf install libasan libubsan libtsan) or set HONE_CXX "
                    "to the compiler that Hone was built with\n{}",
                    command.front(), HONE_SANITIZERS, text));
  }
  if (const std::string frame = large_frame(text); !frame.empty())
    throw Error(ErrorCode::compile_failed,
                fmt::format("the kernel \"{}\" did not compile for the host device: {}", unit.name, frame));
  const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("exited with {}", WEXITSTATUS(status));
  std::string why = unsupported_feature(text);
  if (!why.empty()) why.insert(0, ": ");
  throw Error(ErrorCode::compile_failed,
              fmt::format("the kernel \"{}\" did not compile for the host device{}\n{}\n{}\n{}", unit.name, why,
                          fmt::join(command, " "), how, text));
}

/// Returns the object file of instrumentation.cpp, which is the same in every module. It takes the compiler longer than
/// most units do, so a process compiles it once.
std::string instrumentation_object(const Unit& unit, const fs::path& folder, const fs::path& compiler) {
  static std::mutex mutex;
  // Never destroyed: a static Session may compile after main().
  static auto& objects = *new std::map<fs::path, std::string>;
  const std::scoped_lock lock(mutex);
  if (const auto known = objects.find(compiler); known != objects.end()) return known->second;
  run_or_throw(unit, folder, {compiler.string(), "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-c",
                              "../prelude/instrumentation.cpp", "-o", "../compiled.o"});
  return objects[compiler] = read_file(folder.parent_path() / "compiled.o");
}

}  // namespace

HostCompiler::HostCompiler(const std::string& requested, std::string architecture,
                           HostInstrumentation instrumentation)
    : requested_(requested), architecture_(std::move(architecture)), instrumentation_(instrumentation) {
  static constexpr std::array<std::string_view, 3> kUsual{"c++", "g++", "clang++"};
  if (!requested.empty()) compiler_ = find_on_path(requested);
  for (std::size_t i = 0; requested.empty() && compiler_.empty() && i < kUsual.size(); ++i) {
    compiler_ = find_on_path(std::string(kUsual[i]));
  }
  std::error_code error;
  is_clang_ = fs::canonical(compiler_, error).filename().string().find("clang") != std::string::npos;
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
  const CompileFolder temp;
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
  append(compile_options(instrumentation_, is_clang_));
  command.push_back("-ffile-prefix-map=" + folder.string() + "=.");  // reports name the unit's files, not the folder
  append({"-I."});
  for (const std::string& include_folder : unit.include_folders) command.push_back("-I" + include_folder);
  append({"-include", "../prelude/cuda_on_host.h", "-c", std::string(kUnitFile), "-o", "../unit.o"});
  run_or_throw(unit, folder, command);

  const std::vector<std::byte> object = read_bytes(temp.path() / "unit.o");
  std::vector<std::string> dynamic_names = undefined_tls_symbols(object);
  std::erase(dynamic_names, kSmemSymbol);
  write_file(temp.path() / "linked.s", linked_assembly(unit, dynamic_names));
  command = {compiler_.string()};
  append(link_options(instrumentation_));
  append({"../unit.o"});
  if (reports_to_engine(instrumentation_)) {
    write_file(temp.path() / "instrumentation.o", instrumentation_object(unit, folder, compiler_));
    append({"../instrumentation.o"});
  }
  append({"../linked.s", "-lm", "-lc", "-lgcc", "-o", "../unit.so"});
  run_or_throw(unit, folder, command);
  return {"elf", architecture_, read_bytes(temp.path() / "unit.so")};
}

}  // namespace hone
