#include "runtime/jit/nvrtc_compiler.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hone/error.h>

#include "runtime/jit/file_identity.h"
#include "runtime/jit/line_info.h"

namespace hone {
namespace {

/// The source's name in logs and line tables: always the same, so that the same source gives the same cubin.
constexpr const char* kSourceName = "unit.cu";

void check_nvrtc(const NvrtcLibrary& nvrtc, nvrtcResult result, std::string_view doing) {
  if (result == NVRTC_SUCCESS) return;
  throw Error(ErrorCode::compile_failed,
              fmt::format("NVRTC ({}) failed while {}: {}", nvrtc.path(), doing, nvrtc.error_string(result)));
}

class Program {
 public:
  Program(const NvrtcLibrary& nvrtc, const Unit& unit) : nvrtc_(nvrtc) {
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const SourceFile& header : unit.headers) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    check_nvrtc(nvrtc_,
                nvrtc_.create(&program_, unit.source.c_str(), kSourceName, static_cast<int>(unit.headers.size()),
                              texts.data(), names.data()),
                "creating a program");
    for (const std::string& entry : unit.entries)
      check_nvrtc(nvrtc_, nvrtc_.add_name_expression(program_, entry.c_str()), "naming a kernel");
  }
  ~Program() { nvrtc_.destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(std::span<const std::string> options) const {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() const {
    std::size_t size = 0;  // with the terminating zero
    if (nvrtc_.log_size(program_, &size) != NVRTC_SUCCESS || size < 2) return "(the compiler wrote no log)";
    std::string text(size, '\0');
    if (nvrtc_.log(program_, text.data()) != NVRTC_SUCCESS) return "(the compiler's log cannot be read)";
    text.resize(text.find_last_not_of(std::string_view("\0\n", 2)) + 1);
    return text;
  }

  /// The symbol of a kernel that the unit names.
  std::string symbol(const std::string& entry) const {
    const char* name = nullptr;
    check_nvrtc(nvrtc_, nvrtc_.lowered_name(program_, entry.c_str(), &name), "asking for the symbol of a kernel");
    return name;
  }

  std::vector<std::byte> cubin() const {
    std::size_t size = 0;
    check_nvrtc(nvrtc_, nvrtc_.cubin_size(program_, &size), "asking for the size of a cubin");
    std::vector<std::byte> code(size);
    check_nvrtc(nvrtc_, nvrtc_.cubin(program_, reinterpret_cast<char*>(code.data())), "reading a cubin");
    return code;
  }

 private:
  const NvrtcLibrary& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

std::string version_string(const NvrtcLibrary& nvrtc) {
  int major = 0;
  int minor = 0;
  check_nvrtc(nvrtc, nvrtc.version(&major, &minor), "asking for its version");
  return fmt::format("{}.{}", major, minor);
}

/// Throws unless NVRTC compiles for `architecture`; a suffix of features ("sm_90a") is not looked at.
void require_architecture(const NvrtcLibrary& nvrtc, std::string_view architecture) {
  int count = 0;
  check_nvrtc(nvrtc, nvrtc.supported_count(&count), "counting the architectures that it knows");
  std::vector<int> known(static_cast<std::size_t>(count));
  check_nvrtc(nvrtc, nvrtc.supported(known.data()), "listing the architectures that it knows");

  int number = 0;
  if (architecture.starts_with("sm_")) {
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  }
  if (std::find(known.begin(), known.end(), number) != known.end()) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("NVRTC {} ({}) cannot compile for {}; it knows sm_{}. Point HONE_NVRTC at the NVRTC of a "
                          "CUDA toolkit that supports this GPU",
                          version_string(nvrtc), nvrtc.path(), architecture, fmt::join(known, ", sm_")));
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(NvrtcSearch search)
    : search_(std::move(search)), path_(search_.find()), has_line_info_(line_info_from_environment()) {}

std::string NvrtcCompiler::identity() const { return path_.empty() ? std::string() : file_identity(path_); }

std::vector<std::string> NvrtcCompiler::include_folders(std::string_view header) const {
  return cuda_include_folders(path_, header);
}

const NvrtcLibrary& NvrtcCompiler::library() const {
  const std::lock_guard lock(mutex_);
  if (!library_) {
    if (path_.empty()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("a kernel must be compiled, but NVRTC ({}) was not found. Looked in: {}. Install the "
                              "cuda-nvrtc package of a CUDA toolkit, or set HONE_NVRTC to the library",
                              fmt::join(nvrtc_file_names(), " or "), search_.describe()));
    }
    library_ = std::make_unique<NvrtcLibrary>(path_);
  }
  return *library_;
}

Binary NvrtcCompiler::compile(const Unit& unit, std::string_view architecture) const {
  const NvrtcLibrary& nvrtc = library();
  require_architecture(nvrtc, architecture);
  std::vector<std::string> options{fmt::format("--gpu-architecture={}", architecture), "--std=c++20"};
  if (has_line_info_) options.push_back("-lineinfo");
  for (const std::string& folder : unit.include_folders) options.push_back("--include-path=" + folder);
  const Program program(nvrtc, unit);
  if (const nvrtcResult result = program.compile(options); result != NVRTC_SUCCESS) {
    throw Error(ErrorCode::compile_failed,
                fmt::format("the kernel \"{}\" does not compile with NVRTC {} and the options {}: {}\n{}", unit.name,
                            version_string(nvrtc), fmt::join(options, " "), nvrtc.error_string(result), program.log()));
  }
  Binary binary{.format = "cubin", .architecture = std::string(architecture), .code = program.cubin()};
  for (const std::string& entry : unit.entries) binary.entries.push_back(program.symbol(entry));
  return binary;
}

}  // namespace hone
