#include "runtime/jit/nvrtc_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hone/error.h>

namespace hone {
namespace {

namespace fs = std::filesystem;

fs::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

/// The library in one folder, links resolved; empty when it is not there.
fs::path find_in(const fs::path& folder) {
  for (const std::string& name : nvrtc_file_names()) {
    std::error_code error;
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path, error)) continue;
    const fs::path resolved = fs::canonical(path, error);
    if (!error) return resolved;
  }
  return {};
}

void append_search_path(std::string_view list, std::vector<fs::path>& folders) {
  while (!list.empty()) {
    const std::size_t end = list.find(':');
    const std::string_view folder = list.substr(0, end);
    // To the loader an empty or relative entry depends on the working directory; nothing here does.
    if (folder.starts_with('/')) folders.emplace_back(folder);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
}

/// Not `bind`: by the type of `path` that may name std::bind, which would match better and do nothing.
template <class Function>
void look_up(void* handle, const char* symbol, const std::string& path, Function& function) {
  void* address = dlsym(handle, symbol);
  if (address == nullptr) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is no usable NVRTC: it lacks {}; point HONE_NVRTC at the {} of a CUDA toolkit", path,
                            symbol, nvrtc_file_names().front()));
  }
  function = reinterpret_cast<Function>(address);
}

}  // namespace

std::vector<std::string> nvrtc_file_names() {
  return {fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000), "libnvrtc.so"};
}

NvrtcSearch NvrtcSearch::from_environment() {
  NvrtcSearch search;
  search.chosen = environment_path("HONE_NVRTC");
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const fs::path toolkit = environment_path(variable);
    if (toolkit.empty()) continue;
    search.folders.push_back(toolkit / "lib64");
    search.folders.push_back(toolkit / "lib");
  }
  for (const char* variable : {"HONE_NVRTC_PATH", "LD_LIBRARY_PATH"})
    append_search_path(environment_path(variable).native(), search.folders);
  for (const char* folder : {HONE_TOOLKIT_LIBRARY_DIR, "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    search.folders.emplace_back(folder);
  }
  return search;
}

fs::path NvrtcSearch::find() const {
  if (!chosen.empty()) {
    std::error_code error;
    if (fs::is_directory(chosen, error)) return find_in(chosen);
    const fs::path resolved = fs::canonical(chosen, error);
    return error ? fs::path() : resolved;
  }
  for (const fs::path& folder : folders) {
    if (fs::path found = find_in(folder); !found.empty()) return found;
  }
  return {};
}

std::string NvrtcSearch::describe() const {
  if (!chosen.empty()) return fmt::format("HONE_NVRTC={}", chosen.native());
  std::vector<std::string> names;
  for (const fs::path& folder : folders) names.push_back(folder.native());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> cuda_include_folders(const fs::path& library, std::string_view header) {
  std::error_code ignored;
  for (fs::path above = library.parent_path(); above.has_relative_path(); above = above.parent_path()) {
    const fs::path include = above / "include";
    if (!fs::is_regular_file(include / header, ignored)) continue;
    std::vector<std::string> folders{include.string()};
    if (fs::is_directory(include / "cccl", ignored)) folders.push_back((include / "cccl").string());
    return folders;
  }
  return {};
}

NvrtcLibrary::NvrtcLibrary(const fs::path& path) : path_(path.native()) {
  void* handle = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw Error(ErrorCode::unsupported,
                fmt::format("NVRTC cannot be opened: {}; point HONE_NVRTC at the {} of a CUDA toolkit",
                            reason == nullptr ? path_ : reason, nvrtc_file_names().front()));
  }
  look_up(handle, "nvrtcVersion", path_, version);
  look_up(handle, "nvrtcGetErrorString", path_, error_string);
  look_up(handle, "nvrtcGetNumSupportedArchs", path_, supported_count);
  look_up(handle, "nvrtcGetSupportedArchs", path_, supported);
  look_up(handle, "nvrtcCreateProgram", path_, create);
  look_up(handle, "nvrtcDestroyProgram", path_, destroy);
  look_up(handle, "nvrtcAddNameExpression", path_, add_name_expression);
  look_up(handle, "nvrtcGetLoweredName", path_, lowered_name);
  look_up(handle, "nvrtcCompileProgram", path_, compile);
  look_up(handle, "nvrtcGetProgramLogSize", path_, log_size);
  look_up(handle, "nvrtcGetProgramLog", path_, log);
  look_up(handle, "nvrtcGetCUBINSize", path_, cubin_size);
  look_up(handle, "nvrtcGetCUBIN", path_, cubin);
}

}  // namespace hone
