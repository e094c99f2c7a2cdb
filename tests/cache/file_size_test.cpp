#include "cache/file_size_signal.h"

#include <sys/resource.h>

#include <csignal>

#include "cache/place.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

/// SIGXFSZ as a program finds it: it ends the process. Only for a child process.
void limit_file_size(::rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_DFL);
  const ::rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

bool is_held_back() {
  ::sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, SIGXFSZ) == 1;
}

TEST_F(CacheStore, FileSizeLimitFailsAPublicationAndEndsNoProgram) {
  store_.publish(sample_);
  Publication big = sample_;
  big.binary.code = random_code(1'000'000);
  const int status = in_child([&] {
    limit_file_size(200'000);
    if (fault_of([&] { store_.publish(big); }, file_, "too large") != StoreFault::full) return 1;
    if (is_held_back()) return 2;
    return store_.find(query_) ? 0 : 3;
  });
  EXPECT_EQ(status, 0) << "-1: a signal ended it";
}

TEST_F(CacheStore, FileSizeLimitFailsAReplacementAndEndsNoProgram) {
  const std::vector<std::byte> content(100'000);
  const int status = in_child([&] {
    limit_file_size(50'000);
    return fault_of([&] { replace_file(file_, content); }, file_, "too large") == StoreFault::full ? 0 : 1;
  });
  EXPECT_EQ(status, 0) << "-1: a signal ended it";
}

TEST(FileSizeSignal, OverlappingOnesEndInAnyOrder) {
  ASSERT_FALSE(is_held_back());
  auto first = std::make_unique<FileSizeSignal>();
  auto second = std::make_unique<FileSizeSignal>();
  first.reset();
  EXPECT_TRUE(is_held_back());
  second.reset();
  EXPECT_FALSE(is_held_back());
}

}  // namespace
}  // namespace hone::cache
