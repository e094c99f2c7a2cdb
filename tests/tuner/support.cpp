#include "tests/tuner/support.h"

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace hone::tuner::testing {

Environment isolated_environment(const std::filesystem::path& cache_path) {
  Environment environment;
  environment.session_options = [cache_path] {
    SessionOptions options;
    options.cache_path = cache_path;
    return options;
  };
#ifdef HONE_COMMAND
  environment.worker_program = HONE_COMMAND;
#endif
  return environment;
}

CommandRun run_hone(const std::vector<std::string>& args, const Environment& environment) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_command(args, out, err, environment);
  return {code, out.str(), err.str()};
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hone_tuner_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder could be made: " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string npy_header(std::string_view dictionary, int major) {
  const std::size_t preamble = major == 1 ? 10 : 12;
  std::string text(dictionary);
  while ((preamble + text.size() + 1) % 64 != 0) text.push_back(' ');
  text.push_back('\n');
  std::string header("\x93NUMPY", 6);
  header.push_back(static_cast<char>(major));
  header.push_back('\0');
  for (std::size_t i = 0; i < preamble - 8; ++i) header.push_back(static_cast<char>(text.size() >> (8 * i) & 0xFF));
  return header + text;
}

}  // namespace hone::tuner::testing
