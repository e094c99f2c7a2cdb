// Tests of pinned sessions: calls that they have not served yet, and all that would change their winners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include <hone/error.h>

#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class SessionPinTest : public FakeSessionTest {
 protected:
  static Error error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::unsupported, "nothing was thrown");
  }
};

TEST_F(SessionPinTest, AMissIsNotTunedAndKeepsWhatServesItFirst) {
  Session session(device_, options());
  EXPECT_FALSE(session.is_pinned());
  session.pin();
  EXPECT_TRUE(session.is_pinned());
  const Choice first = launch(session);
  EXPECT_EQ(first.source, ChoiceSource::heuristic);
  EXPECT_EQ(session.counters().tunings, 0u);
  EXPECT_EQ(Session(device_, options()).prepare(family_.problem(kSize)).source, ChoiceSource::tuned);
  const Choice later = launch(session);
  EXPECT_EQ(later.source, ChoiceSource::memory);
  EXPECT_EQ(later.winner, first.winner);
}

TEST_F(SessionPinTest, AMissIsServedByTheCache) {
  const Candidate tuned = Session(device_, options()).prepare(family_.problem(kSize)).winner->candidate;
  Session session(device_, options(MissPolicy::error));
  session.pin();
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(choice.winner->candidate, tuned);
  EXPECT_EQ(error_of([&] { launch(session, 50 * kSize); }).code(), ErrorCode::not_tuned);
}

TEST_F(SessionPinTest, TunedWinnersStayAndTuningIsRefused) {
  Session session(device_, options());
  const Choice tuned = launch(session);
  ASSERT_EQ(tuned.source, ChoiceSource::tuned);
  session.pin();
  const Tuning tuning = Session(device_, options()).tune(family_.problem(kSize), {});
  for (const std::function<void()>& change : std::vector<std::function<void()>>{
           [&] { session.tune(family_.problem(kSize), {}); },
           [&] { session.adopt(tuning, std::array{family_.problem(kSize)}); }}) {
    const Error error = error_of(change);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(std::string(error.what()), Names("pinned", "before", "pin()"));
  }
  EXPECT_EQ(launch(session).winner, tuned.winner);
  EXPECT_EQ(session.counters().tunings, 1u);
}

}  // namespace
}  // namespace hone
