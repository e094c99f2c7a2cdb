#include "benchmarks/tuner_regret/process.h"

#include <gtest/gtest.h>

#include <hone/error.h>

namespace hone::benchmarks {
namespace {

TEST(Process, SaysWhatItPrintedAndHowItEnded) {
  const Output output = run_process({"sh", "-c", "echo out; echo \"it's err\" >&2; exit 3"});
  EXPECT_EQ(output.text, "out\nit's err\n");
  EXPECT_EQ(output.exit_code, 3);
}

TEST(Process, IsInterruptedWhenItStillRuns) {
  using std::chrono::milliseconds;
  EXPECT_EQ(run_process({"sleep", "30"}, milliseconds(50)).exit_code, 130);
  EXPECT_EQ(run_process({"true"}, milliseconds(20000)).exit_code, 0);
}

TEST(Process, ThatDoesNotExistIsAnError) { EXPECT_THROW(run_process({"/nowhere/hone"}), Error); }

}  // namespace
}  // namespace hone::benchmarks
