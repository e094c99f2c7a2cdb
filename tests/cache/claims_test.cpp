#include "cache/claims.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "cache/process.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::chrono::milliseconds kLong = 60s;
constexpr std::chrono::milliseconds kPatience = 20s;

class CacheClaims : public CacheStore {
 protected:
  ClaimState claim(const std::string& owner, std::chrono::milliseconds lease = kLong) const {
    return store_.claim(sample_.key, &need_, owner, lease, kPatience);
  }
  /// Claims in a child process that then does `afterwards`; returns it before it was waited for.
  ::pid_t claim_in_child(std::chrono::milliseconds lease, const std::function<void()>& afterwards) const {
    const ::pid_t child = ::fork();
    if (child == 0) {
      try {
        claim("child", lease);
        afterwards();
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    while (!is_claimed() && !has_ended_already(child)) std::this_thread::sleep_for(1ms);
    return child;
  }
  /// A reader may give up on a lock; then it does not know.
  bool is_claimed() const {
    try {
      return store_.is_claimed(sample_.key);
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::busy) throw;
      return false;
    }
  }
  static bool has_ended_already(::pid_t child) {
    ::siginfo_t info{};
    ::waitid(P_PID, static_cast<::id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == child;
  }
};

TEST_F(CacheClaims, OneOwnerTakesAClass) {
  EXPECT_FALSE(store_.is_claimed(sample_.key));
  EXPECT_EQ(claim("a"), ClaimState::taken);
  EXPECT_TRUE(store_.is_claimed(sample_.key));
  EXPECT_EQ(claim("b"), ClaimState::held);
  EXPECT_EQ(claim("a"), ClaimState::held) << "even the owner does not take it twice";
}

TEST_F(CacheClaims, EveryKeyColumnMakesAnotherClass) {
  EXPECT_EQ(claim("a"), ClaimState::taken);
  const std::vector<std::function<void(KeyRecord&)>> changes{
      [](KeyRecord& key) { key.device.kind = "host"; },
      [](KeyRecord& key) { key.device.architecture = "sm_80"; },
      [](KeyRecord& key) { key.device.identity += "x"; },
      [](KeyRecord& key) { key.toolchain.compiler = "nvrtc 12.8"; },
      [](KeyRecord& key) { key.toolchain.family_digest = "f"; },
      [](KeyRecord& key) { key.problem.family = "softmax"; },
      [](KeyRecord& key) { key.problem.operation = "max"; },
      [](KeyRecord& key) { key.problem.dtype = "f64"; },
      [](KeyRecord& key) { key.problem.numerics = "reproducible"; },
      [](KeyRecord& key) { key.problem.launch_context = "graph"; },
      [](KeyRecord& key) { key.problem.alignment = 8; },
      [](KeyRecord& key) { key.problem.sizes[0].last = 999; },
      [](KeyRecord& key) { key.problem.sizes[2].first = 0; },
  };
  for (const auto& change : changes) {
    KeyRecord key = sample_.key;
    change(key);
    EXPECT_FALSE(store_.is_claimed(key));
    EXPECT_EQ(store_.claim(key, nullptr, "b", kLong, kPatience), ClaimState::taken);
  }
}

TEST_F(CacheClaims, TunedWinnerMakesAClaimNeedless) {
  store_.publish(untuned_publication());
  EXPECT_EQ(claim("a"), ClaimState::taken) << "an untuned one does not";
  store_.publish(sample_);
  EXPECT_FALSE(store_.is_claimed(sample_.key)) << "the publication ended the claim";
  EXPECT_EQ(claim("b"), ClaimState::served);
  EXPECT_EQ(store_.claim(sample_.key, nullptr, "b", kLong, kPatience), ClaimState::taken);
}

TEST_F(CacheClaims, UntunedPublicationEndsNoClaim) {
  EXPECT_EQ(claim("a"), ClaimState::taken);
  store_.publish(untuned_publication());
  EXPECT_EQ(claim("b"), ClaimState::held);
}

/// The publication of a tuning of `ms` that has compared nothing.
Publication uncompared_publication(double ms, std::chrono::seconds age = 0s) {
  Publication publication = untuned_publication();
  const auto now = std::chrono::system_clock::now().time_since_epoch() - age;
  publication.tuning = TuningRecord{.started_at = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                                    .compile_ms = ms / 2,
                                    .measure_ms = ms / 2,
                                    .budget_spent = true,
                                    .trials = {}};
  return publication;
}

TEST_F(CacheClaims, TuningThatComparedNothingEndsItsClaimAndIsNotRepeated) {
  EXPECT_EQ(claim("a"), ClaimState::taken);
  store_.publish(uncompared_publication(500));
  EXPECT_FALSE(store_.is_claimed(sample_.key));
  EXPECT_THAT(sql(file_, "SELECT tuned FROM winner"), testing::ElementsAre("0"));
  need_.budget_ms = 500;
  EXPECT_EQ(claim("b"), ClaimState::served);
  need_.budget_ms = 5000;
  EXPECT_EQ(claim("b"), ClaimState::taken) << "with much more time";
}

TEST_F(CacheClaims, TuningThatComparedNothingIsRepeatedAfterAnHour) {
  store_.publish(uncompared_publication(500, 2h));
  need_.budget_ms = 500;
  EXPECT_EQ(claim("b"), ClaimState::taken);
}

TEST_F(CacheClaims, ChoiceWithoutMeasuringReplacesNoTuning) {
  store_.publish(uncompared_publication(500));
  store_.publish(untuned_publication());
  ASSERT_TRUE(store_.find(query_));
  EXPECT_TRUE(store_.find(query_)->attempt);
}

TEST_F(CacheClaims, WiderWinnerEndsTheClaimsThatItCovers) {
  EXPECT_EQ(claim("a"), ClaimState::taken);
  store_.publish(wider(sample_));
  EXPECT_THAT(sql(file_, "SELECT * FROM claim"), IsEmpty());
}

TEST_F(CacheClaims, ReleasedClaimIsFree) {
  EXPECT_EQ(claim("a"), ClaimState::taken);
  store_.release(sample_.key, "b");
  EXPECT_EQ(claim("b"), ClaimState::held) << "only the owner can release it";
  store_.release(sample_.key, "a");
  EXPECT_EQ(claim("b"), ClaimState::taken);
}

TEST_F(CacheClaims, LeaseThatIsPastIsTakenOver) {
  EXPECT_EQ(claim("a", 1ms), ClaimState::taken);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(store_.is_claimed(sample_.key));
  EXPECT_EQ(claim("b"), ClaimState::taken);
  EXPECT_EQ(claim("c"), ClaimState::held);
  EXPECT_FALSE(store_.renew(sample_.key, "a", kLong)) << "it is b's now";
}

TEST_F(CacheClaims, RenewedClaimStays) {
  EXPECT_EQ(claim("a", 300ms), ClaimState::taken);
  EXPECT_TRUE(store_.renew(sample_.key, "a", kLong));
  std::this_thread::sleep_for(310ms);
  EXPECT_EQ(claim("b"), ClaimState::held);
  EXPECT_FALSE(store_.renew(wider(sample_).key, "a", kLong)) << "nobody claimed that";
}

TEST_F(CacheClaims, EndedOwnerIsSucceededAtOnce) {
  const ::pid_t child = claim_in_child(kLong, [] { ::raise(SIGKILL); });
  while (!has_ended_already(child)) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(sql(file_, "SELECT owner FROM claim"), ElementsAre("child"));
  EXPECT_FALSE(store_.is_claimed(sample_.key)) << "not reaped, but dead";
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(claim("b"), ClaimState::taken);
}

TEST_F(CacheClaims, StoppedOwnerIsSucceededWhenItsLeaseIsPast) {
  const ::pid_t child = claim_in_child(1500ms, [] { ::raise(SIGSTOP); });
  EXPECT_EQ(claim("b"), ClaimState::held);
  std::this_thread::sleep_for(1600ms);
  EXPECT_EQ(claim("b"), ClaimState::taken);
  EXPECT_EQ(claim("c"), ClaimState::held) << "one, not all";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(CacheClaims, OwnerOfAnotherBootOrMachineLivesAsLongAsItsLease) {
  EXPECT_EQ(claim("a"), ClaimState::taken);
  for (const std::string process : {"other-boot pid:[1] 1 1", "", "nonsense", "a b ../../etc 1"}) {
    sql(file_, "UPDATE claim SET process = '" + process + "'");
    EXPECT_TRUE(store_.is_claimed(sample_.key)) << process;
  }
}

TEST_F(CacheClaims, ClaimWithTimesThatCannotBeIsNotBelieved) {
  const std::string year = "31536000000";
  for (const std::string& change : {"taken_at_ms = taken_at_ms + " + year + ", expires_at_ms = expires_at_ms + " + year,
                                    "expires_at_ms = expires_at_ms + " + year,
                                    "taken_at_ms = taken_at_ms - " + year + ", expires_at_ms = expires_at_ms - " + year,
                                    std::string("expires_at_ms = 9223372036854775807"),
                                    std::string("expires_at_ms = 0")}) {
    EXPECT_EQ(claim("a"), ClaimState::taken) << change;
    sql(file_, "UPDATE claim SET " + change);
    EXPECT_FALSE(store_.is_claimed(sample_.key)) << change;
  }
}

TEST_F(CacheClaims, FileOfAnEarlierVersionHasNone) {
  make_fixture(folder_ / "old.sqlite", 1);
  EXPECT_FALSE(Store(folder_ / "old.sqlite").is_claimed(sample_.key));
}

TEST_F(CacheClaims, OwnersHaveNamesOfTheirOwn) {
  EXPECT_EQ(new_owner().size(), 32u);
  EXPECT_NE(new_owner(), new_owner());
}

TEST(CacheProcess, KnowsItselfAndTheDead) {
  EXPECT_FALSE(has_ended(this_process()));
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const ::pid_t child = ::fork();
  if (child == 0) {
    const std::string name = this_process();
    ::_exit(::write(pipe[1], name.data(), name.size()) == static_cast<::ssize_t>(name.size()) ? 0 : 1);
  }
  std::string name(200, '\0');
  name.resize(static_cast<std::size_t>(std::max<::ssize_t>(::read(pipe[0], name.data(), name.size()), 0)));
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_NE(name, this_process());
  EXPECT_TRUE(has_ended(name));
  EXPECT_TRUE(has_ended(this_process() + "0")) << "a PID that was given to another process";
}

/// Does what a session does with a cold key. Exit status 1: tuned it; 0: found it tuned.
int tune_or_wait(const Store& store, const Publication& publication) {
  const Need need{.query = matching_query(publication)};
  const std::string owner = new_owner();
  for (;;) {
    try {
      const ClaimState state = store.claim(publication.key, &need, owner, kLong, kPatience);
      if (state == ClaimState::served) return 0;
      if (state == ClaimState::taken) {
        std::this_thread::sleep_for(50ms);
        store.publish(publication);
        return 1;
      }
      do std::this_thread::sleep_for(20ms);
      while (store.is_claimed(publication.key));
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::busy) return 2;
    }
  }
}

TEST_F(CacheClaims, SixtyFourProcessesWithOneColdKeyTuneOnce) {
  std::vector<::pid_t> children;
  for (int process = 0; process < 64; ++process) {
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(tune_or_wait(store_, sample_));
    children.push_back(child);
  }
  std::vector<int> results;
  for (const ::pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  EXPECT_EQ(std::count(results.begin(), results.end(), 1), 1);
  EXPECT_EQ(std::count(results.begin(), results.end(), 0), 63);
  EXPECT_THAT(sql(file_, "SELECT * FROM claim"), IsEmpty());
}

}  // namespace
}  // namespace hone::cache
