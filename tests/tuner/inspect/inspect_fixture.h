// InspectTest: a cache with winners of an invented GPU and of the host, for the tests of hone inspect.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/store.h"
#include "tests/tuner/support.h"

namespace hone::tuner {

cache::CandidateRecord stored_candidate(int block_threads, int resident_blocks, std::int64_t max_blocks);

/// An invented GPU: 100 SMs, 3000 GB/s.
cache::KeyRecord gpu_key(std::int64_t first, std::int64_t last);

cache::TrialRecord stored_trial(int block_threads, double median_us);

cache::TrialRecord rejected_trial(const std::string& verdict, const std::string& reason);

cache::Publication tuned_sum();

cache::Publication heuristic_max_on_host();

/// Another class that the winner of tuned_sum() serves, unmeasured.
cache::Publication lent(std::int64_t first, std::int64_t last);

class InspectTest : public ::testing::Test {
 protected:
  testing::CommandRun inspect(std::vector<std::string> args = {}, int columns = 0) {
    args.insert(args.begin(), "inspect");
    Environment environment = testing::isolated_environment(path_);
    environment.out_columns = [columns] { return columns; };
    environment.unix_time = [this] { return store_.winners().back().created_at + 3 * 3600; };
    return testing::run_hone(args, environment);
  }

  nlohmann::json json(std::vector<std::string> args) {
    args.push_back("--json");
    return nlohmann::json::parse(inspect(std::move(args)).out).at("winners");
  }

  void fill() {
    store_.publish(tuned_sum());
    store_.publish(heuristic_max_on_host());
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "cache.sqlite";
  cache::Store store_{path_};
};

}  // namespace hone::tuner
