// LongTest: a fixture whose tests are cases of the share themselves.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/share.h"

namespace hone::test {

/// Returns true if the test that runs belongs to the share.
inline bool is_due() { return in_share(testing::UnitTest::GetInstance()->current_test_info()->name()); }

/// Tests of this fixture take seconds each. Those that are not in the share are skipped.
class LongTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_due()) GTEST_SKIP() << kNotInShare;
  }
};

}  // namespace hone::test
