// CacheCommand: two cache files, and hone cache run on them.
#pragma once

#include <nlohmann/json.hpp>

#include <istream>
#include <string>
#include <vector>

#include "tests/cache/maintenance/maintenance_fixture.h"
#include "tests/tuner/support.h"

namespace hone::tuner {

class CacheCommand : public cache::CacheMaintenance {
 protected:
  /// `hone cache` with these words, at kTime + 100 days, on file_, in a machine with the device of the sample winners.
  testing::CommandRun hone(std::vector<std::string> words, std::istream* in = nullptr) const;

  /// The same with --json; fails the test where that is not what comes out.
  nlohmann::json json(std::vector<std::string> words) const;

  /// numbered(0) to numbered(count - 1) in file_, one second apart.
  void fill(int count) const;

  std::string export_text() const { return hone({"export"}).out; }

  /// The toolchain that is current, see Environment::toolchains.
  std::string driver_ = "580.1";
};

/// Fails the test where the run did not end with this code and a message that has these words.
void expect_refusal(const testing::CommandRun& run, int code, const std::string& words);

}  // namespace hone::tuner
