// ReportTest: an invented cache of a GPU, and hone report run on it.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "cache/store.h"
#include "tests/tuner/support.h"

namespace hone::tuner {

/// A tuned sum of 2^k floats on an invented H100, which serves an eighth of an octave to both sides: six candidates,
/// the fastest of which wins, and two that were rejected.
cache::Publication tuned_sum(int k, const std::string& operation = "sum", const std::string& dtype = "f32");

/// The class half an octave above tuned_sum(k), which the same winner serves unmeasured.
cache::Publication lent_sum(int k);

/// A class that nobody tuned.
cache::Publication untuned_sum(int k);

/// As the store returns it, with the id 0.
cache::StoredWinner stored_winner(const cache::Publication& publication);

class ReportTest : public ::testing::Test {
 protected:
  /// `hone` with these words, on path_, 1 µs after the winners were stored.
  testing::CommandRun hone(std::vector<std::string> words) const;

  /// hone report to page_; fails the test where it does not end well.
  std::string page(std::vector<std::string> words = {}) const;

  /// The data in a page.
  static nlohmann::json data_of(const std::string& page);

  /// Sums and maxima of f32 and f16 with 2^12 to 2^28 elements, with lent and untuned classes.
  void fill() const;

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "cache.sqlite";
  std::filesystem::path page_ = folder_ / "report.html";
  cache::Store store_{path_, 0};
};

}  // namespace hone::tuner
