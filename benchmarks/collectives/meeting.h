// Meeting: where the ranks of the benchmark, threads or processes, wait for each other and see each other's findings.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hone::benchmarks {

/// A rank's measurement of one size.
struct Finding {
  std::array<double, 5> us{};    ///< of each contender
  double sum = 0;                ///< of the rank's array
  std::uint32_t first_bits = 0;  ///< of its first result
  bool is_steady = true;         ///< all of its results have those bits
  double error = 0;              ///< of a softmax, relative to what is allowed
};

/// In memory that processes share, which lives as long as the program.
class Meeting {
 public:
  static constexpr int kMostRanks = 64;

  /// Throws std::runtime_error for more ranks than kMostRanks.
  static Meeting& make(int ranks);

  int ranks() const { return ranks_; }

  /// All ranks come here before and after each step. Throws std::runtime_error on all of them once one has failed.
  void arrive();

  /// The first failure is kept.
  void fail(const std::string& why);
  std::string failure() const;

  std::array<Finding, kMostRanks> findings{};
  std::array<char, 128> nccl_id{};  ///< from rank 0

 private:
  explicit Meeting(int ranks) : ranks_(ranks) {}

  int ranks_;
  std::atomic<int> arrived_ = 0, generation_ = 0;
  std::atomic<int> failing_ = 0, has_failed_ = 0;
  std::array<char, 1000> why_{};
};

}  // namespace hone::benchmarks
