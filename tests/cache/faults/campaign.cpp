#include "tests/cache/faults/campaign.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/support/share.h"

/// clang's: writes what a process that ends with _exit() has counted. Absent unless coverage is measured.
extern "C" int __llvm_profile_write_file() __attribute__((weak));

namespace hone::cache {

struct Campaign::Counts {
  std::array<std::atomic<long>, 5> outcomes{};
  std::atomic<long> crashes{0};
  std::atomic<int> current{0};  ///< the case that a child is at
};

namespace {

constexpr unsigned kSecondsPerCase = 60;

struct Line {
  std::string fault;
  long cases, right, missed, refused, wrong, crashes, lost;
};

/// Prints a line for every campaign, and their sums, when all tests have run.
class Table : public testing::Environment {
 public:
  void add(Line line) { lines_.push_back(std::move(line)); }

  void TearDown() override {
    Line sum{"all", 0, 0, 0, 0, 0, 0, 0};
    fmt::print("\n| fault | cases | right | missed | refused | wrong winners | crashes | committed rows lost |\n");
    fmt::print("| --- | --: | --: | --: | --: | --: | --: | --: |\n");
    for (const Line& line : lines_) {
      print(line);
      sum.cases += line.cases;
      sum.right += line.right;
      sum.missed += line.missed;
      sum.refused += line.refused;
      sum.wrong += line.wrong;
      sum.crashes += line.crashes;
      sum.lost += line.lost;
    }
    print(sum);
  }

 private:
  static void print(const Line& line) {
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} |\n", line.fault, line.cases, line.right, line.missed,
               line.refused, line.wrong, line.crashes, line.lost);
  }

  std::vector<Line> lines_;
};

Table& table() {
  static auto* const table = static_cast<Table*>(testing::AddGlobalTestEnvironment(new Table));
  return *table;
}

/// Registered before the tests run: one that is added later is not torn down.
[[maybe_unused]] const Table& registered = table();

[[noreturn]] void end_child(int status) {
  std::fflush(nullptr);
  if (__llvm_profile_write_file != nullptr) __llvm_profile_write_file();
  ::_exit(status);
}

double scale() {
  return 0.2 * test::share();
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

Campaign::Campaign(std::string_view fault) : fault_(fault) {
  void* const shared =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no shared memory");
  counts_ = new (shared) Counts;
}

Campaign::~Campaign() {
  EXPECT_EQ(of(Outcome::wrong), 0) << fault_;
  EXPECT_EQ(of(Outcome::lost), 0) << fault_;
  EXPECT_EQ(counts_->crashes, 0) << fault_;
  table().add({fault_, cases(), of(Outcome::right), of(Outcome::missed), of(Outcome::refused), of(Outcome::wrong),
               counts_->crashes, of(Outcome::lost)});
  ::munmap(counts_, sizeof(Counts));
}

void Campaign::count(Outcome outcome, const std::string& what) {
  ++counts_->outcomes[static_cast<std::size_t>(outcome)];
  constexpr long kShown = 10;
  const bool is_bad = outcome == Outcome::wrong || outcome == Outcome::lost;
  if (!is_bad || of(Outcome::wrong) + of(Outcome::lost) > kShown) return;
  fmt::print(stderr, "{}: case {}: {}: {}\n", fault_, counts_->current.load(),
             outcome == Outcome::wrong ? "wrong" : "lost", what);
}

void Campaign::run(int first, int last, const std::function<void(int)>& work) {
  counts_->current = first;
  while (counts_->current < last) {
    const int status = status_of_child([&] {
      for (int number = counts_->current; number < last; number = ++counts_->current) {
        ::alarm(kSecondsPerCase);
        work(number);
      }
      return 0;
    });
    if (status == 0) continue;
    fmt::print(stderr, "{}: case {} died: {}\n", fault_, counts_->current.load(), describe(status));
    ++counts_->crashes;
    ++counts_->current;
  }
}

long Campaign::cases() const {
  long sum = counts_->crashes;
  for (const std::atomic<long>& outcome : counts_->outcomes) sum += outcome;
  return sum;
}

long Campaign::of(Outcome outcome) const { return counts_->outcomes[static_cast<std::size_t>(outcome)]; }

int status_of_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  const ::pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    try {
      end_child(work());
    } catch (const std::exception& error) {
      fmt::print(stderr, "a child ended with an exception: {}\n", error.what());
      end_child(250);
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) != child) {
  }
  return status;
}

bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

int scaled(int usual) { return std::max(1, static_cast<int>(usual * scale())); }

int stride_of(int usual) { return std::max(1, static_cast<int>(usual / scale())); }

Points::Points(int count, int stride, int turn)
    : stride_(stride),
      first_(static_cast<int>((test::seed() + static_cast<std::size_t>(turn)) % static_cast<std::size_t>(stride))),
      count_(std::max(0, (count - first_ + stride - 1) / stride)) {}

unsigned random_seed(int number, int cases) {
  return static_cast<unsigned>(number) + static_cast<unsigned>(cases) * static_cast<unsigned>(test::seed());
}

}  // namespace hone::cache
