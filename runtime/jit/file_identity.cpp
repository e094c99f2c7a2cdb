#include "runtime/jit/file_identity.h"

#include <system_error>

namespace hone {

std::string file_identity(const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path resolved = std::filesystem::canonical(path, failure);
  if (failure) return {};
  const std::uintmax_t bytes = std::filesystem::file_size(resolved, failure);
  if (failure) return {};
  return resolved.filename().string() + ":" + std::to_string(bytes);
}

}  // namespace hone
