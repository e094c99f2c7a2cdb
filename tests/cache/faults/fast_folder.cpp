#include "tests/cache/faults/fast_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace hone::cache {

namespace fs = std::filesystem;

namespace {

/// Children that are killed leave their temporary files: they go with this folder.
class TemporaryFiles : public testing::Environment {
 public:
  void SetUp() override { ::setenv("TMPDIR", folder_.emplace().path().c_str(), 1); }
  void TearDown() override { folder_.reset(); }

 private:
  std::optional<FastFolder> folder_;
};

[[maybe_unused]] const testing::Environment* const temporary_files =
    testing::AddGlobalTestEnvironment(new TemporaryFiles);

}  // namespace

FastFolder::FastFolder() {
  const fs::path in_memory = "/dev/shm";
  std::error_code error;
  const bool is_there = fs::is_directory(in_memory, error) && ::access(in_memory.c_str(), W_OK | X_OK) == 0;
  std::string name = (is_there ? in_memory : fs::temp_directory_path()) / "hone_cache_faults_XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
  path_ = name;
}

FastFolder::~FastFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void FastFolder::clear() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
}

}  // namespace hone::cache
