// LongUnderSanitizers: a fixture whose tests are cases of the share where sanitizers make them long.
#pragma once

#include "tests/runtime/support/sanitized.h"
#include "tests/support/long_test.h"

namespace hone::test {

/// Most of the time of these tests is the compiler's, on kernels, and longer with a sanitizer: they are a
/// LongTest there, and run always elsewhere.
class LongUnderSanitizers : public LongTest {
 protected:
  void SetUp() override {
    if (kSanitized) LongTest::SetUp();
  }
};

}  // namespace hone::test
