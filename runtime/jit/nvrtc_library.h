// NvrtcLibrary: NVIDIA's run-time compiler, found on the machine and opened only when it is first used.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nvrtc.h>

namespace hone {

/// Where to look for the library.
struct NvrtcSearch {
  /// The library itself, or its folder; nowhere else is looked then. Empty: look in `folders`.
  std::filesystem::path chosen;

  std::vector<std::filesystem::path> folders;  ///< the first that has the library wins

  /// `chosen` from HONE_NVRTC. Folders: of CUDA_HOME and CUDA_PATH, of HONE_NVRTC_PATH (separated by `:`), of
  /// LD_LIBRARY_PATH, of the toolkit that Hone was built with, of /usr/local/cuda, and the system's.
  static NvrtcSearch from_environment();

  /// The library with links resolved; empty when there is none.
  std::filesystem::path find() const;

  /// "HONE_NVRTC=/opt/x", or the folders: for messages.
  std::string describe() const;
};

/// File names of the library, most specific first: "libnvrtc.so.13", "libnvrtc.so".
std::vector<std::string> nvrtc_file_names();

/// The folder of CUDA's headers that has `header` and belongs to the toolkit of this library, and in it that of the C++
/// libraries, which some headers include. It is the nearest folder `include` above the library; none if there is none.
std::vector<std::string> cuda_include_folders(const std::filesystem::path& library, std::string_view header);

/// The functions of an open library. It stays in the process once it is open, since its threads and exit handlers
/// outlive any handle. Immutable, hence safe to use from any thread; so are the functions, on different programs.
class NvrtcLibrary {
 public:
  /// Throws Error(unsupported) when the file cannot be opened or is no NVRTC.
  explicit NvrtcLibrary(const std::filesystem::path& path);

  const std::string& path() const { return path_; }

  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) supported_count = nullptr;
  decltype(&nvrtcGetSupportedArchs) supported = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcAddNameExpression) add_name_expression = nullptr;
  decltype(&nvrtcGetLoweredName) lowered_name = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;

 private:
  std::string path_;
};

}  // namespace hone
