// The common part of the tests of tuner/: running the command in-process, temporary folders, .npy fixtures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/command.h"

namespace hone::tuner::testing {

/// The outcome of a run of the command.
struct CommandRun {
  int code = 0;
  std::string out;
  std::string err;
};

/// An Environment that depends on nothing: no variables, no terminal, the cache file given (or off when empty).
Environment isolated_environment(const std::filesystem::path& cache_path = {});

CommandRun run_hone(const std::vector<std::string>& args, const Environment& environment = isolated_environment());

/// A folder of its own, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, std::string_view content);

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// The header of a .npy file with `dictionary` as its text, padded as numpy.save does.
std::string npy_header(std::string_view dictionary, int major = 1);

/// A whole .npy file of one extent.
template <class T>
std::string npy_file(std::string_view descr, const std::vector<T>& values) {
  const std::string shape = "(" + std::to_string(values.size()) + ",)";
  return npy_header("{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + shape + ", }") +
         bytes_of(values);
}

}  // namespace hone::tuner::testing
