// EndToEnd: the commands with a cache and files in a folder of their own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/long_test.h"
#include "tests/tuner/support.h"

namespace hone::tuner {

class EndToEnd : public test::LongTest {
 protected:
  testing::CommandRun hone(const std::vector<std::string>& args) {
    return testing::run_hone(args, testing::isolated_environment(cache_));
  }

  std::string file(const std::string& name, const std::string& content) {
    testing::write_file(folder_ / name, content);
    return (folder_ / name).string();
  }

  /// `hone reduce` on the host without tuning, as JSON.
  nlohmann::json reduce(const std::string& path, std::vector<std::string> more = {}) {
    std::vector<std::string> args{"reduce", path, "--device", "host", "--on-miss", "heuristic", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const testing::CommandRun run = hone(args);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? nlohmann::json::parse(run.out) : nlohmann::json{};
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path cache_ = folder_ / "deep/below/cache.sqlite";
};

}  // namespace hone::tuner
