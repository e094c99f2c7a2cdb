#include <gmock/gmock.h>

#include <hone/error.h>

#include "tests/runtime/cuda/cuda_test.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class CudaCrashTest : public CudaTest {
 protected:
  // Everything fails from here on, the fixture's own check too.
  void TearDown() override { device_.reset(); }
};

TEST_F(CudaCrashTest, AnAsynchronousFailureIsReportedBySynchronize) {
  const std::unique_ptr<Module> module = load("extern \"C\" __global__ void crash() { __trap(); }\n", {"crash"});
  void* const memory = device_->allocate(1000);
  device_->launch(module->kernel(0), launch_of(1, 1), stream_);
  try {
    device_->synchronize(stream_);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_lost);
    EXPECT_THAT(error.what(), Names("waiting", "stream", "restart"));
  }
  EXPECT_THROW(device_->allocate(1000), Error);
  device_->deallocate(memory);  // neither throws nor crashes, nor do the destructors
  device_->destroy_stream(stream_);
}

}  // namespace
}  // namespace hone
