#include "tuner/text/suggest.h"

#include <gtest/gtest.h>

#include <array>

namespace hone::tuner {
namespace {

constexpr std::array<std::string_view, 4> kCommands{"devices", "tune", "inspect", "reduce"};

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("sum", "sum"), 0U);
  EXPECT_EQ(edit_distance("sun", "sum"), 1U);
  EXPECT_EQ(edit_distance("smu", "sum"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(DidYouMean, FindsMisspeltWords) {
  EXPECT_EQ(closest("device", kCommands), "devices");
  EXPECT_EQ(closest("tnue", kCommands), "tune");
  EXPECT_EQ(closest("INSPECT", kCommands), "inspect");
  EXPECT_EQ(closest("redcue", kCommands), "reduce");
  EXPECT_EQ(did_you_mean("tun", kCommands), " (did you mean 'tune'?)");
}

TEST(DidYouMean, StaysSilentForForeignWords) {
  EXPECT_EQ(closest("benchmark", kCommands), "");
  EXPECT_EQ(closest("x", kCommands), "");
  EXPECT_EQ(closest("", kCommands), "");
  EXPECT_EQ(did_you_mean(std::string(100'000, 'a'), kCommands), "");
}

}  // namespace
}  // namespace hone::tuner
