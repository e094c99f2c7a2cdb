// Campaign: many cases of one fault, run where a crash is counted and harms nothing; and the table of all campaigns.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hone::cache {

/// How one case ended. The first three are right, unless the fault leaves nothing to excuse them.
enum class Outcome {
  right,    ///< every committed row was found
  missed,   ///< a row was not found, or not the newest one, where the fault may have destroyed it
  refused,  ///< a StoreError
  wrong,    ///< a winner or binary that was never committed, or something else than a StoreError was thrown
  lost,     ///< a committed row is gone though the fault leaves it intact
};

/// All cases of one fault. The destructor fails the test if a case was wrong, lost a row or crashed, and adds a line to
/// the table, which is printed when all tests have run.
class Campaign {
 public:
  explicit Campaign(std::string_view fault);
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  /// Counts one case that ran in this process; `what` is printed when it is wrong or lost a row.
  void count(Outcome outcome, const std::string& what = "");

  /// Runs the cases first … last - 1 in child processes. One that dies or takes longer than a minute is counted as a
  /// crash, and the next child goes on behind it. `work` may call count() more than once, and print.
  void run(int first, int last, const std::function<void(int)>& work);

  long cases() const;
  long of(Outcome outcome) const;

 private:
  struct Counts;

  std::string fault_;
  Counts* counts_;  ///< in memory that the child processes share
};

/// Runs `work` in a child process and returns its status as waitpid() gives it. The child ends with what `work`
/// returns, without running destructors or exit handlers; an exception ends it with 250.
int status_of_child(const std::function<int()>& work);

/// How many cases a campaign of `usual` random cases runs: a fifth, times HONE_TEST_SHARE, which scripts/faults sets to
/// 5 and more.
int scaled(int usual);

/// Returns true in a build with AddressSanitizer or ThreadSanitizer.
bool is_sanitized();

/// A campaign over all points that scripts/faults runs at each `usual`-th of them: a fifth of these, times
/// HONE_TEST_SHARE.
int stride_of(int usual);

/// Each `stride`-th of the points 0 … count - 1. Where they begin follows from HONE_TEST_SEED and from `turn`, which
/// tells campaigns apart: as many seeds in a row as the stride meet every point.
class Points {
 public:
  Points(int count, int stride, int turn = 0);

  int count() const { return count_; }
  int operator[](int number) const { return first_ + number * stride_; }

 private:
  int stride_, first_, count_;
};

/// The seed of random case `number` of `cases`: each value of HONE_TEST_SEED has others.
unsigned random_seed(int number, int cases);

}  // namespace hone::cache
