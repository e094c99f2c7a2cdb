#include "tests/runtime/support/device_fixture.h"

namespace hone {

const char* const kTestDevice = HONE_TEST_DEVICE;

}  // namespace hone
