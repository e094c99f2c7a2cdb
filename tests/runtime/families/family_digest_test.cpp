#include <hone/kernel_family.h>

#include <gtest/gtest.h>

#include <set>

#include <hone/tuned_reduce.h>

#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

TEST(FamilyDigest, IsTheSameForTheSameFamily) {
  EXPECT_EQ(family_digest(TotalFamily()), family_digest(TotalFamily()));
  EXPECT_EQ(family_digest(reduce_family()), family_digest(reduce_family()));
  EXPECT_EQ(family_digest(reduce_family()).size(), 32u);
}

TEST(FamilyDigest, ChangesWithEverythingThatDecidesTheCode) {
  std::set<std::string> digests{family_digest(TotalFamily())};
  const auto add = [&](const TotalFamily& family) { EXPECT_TRUE(digests.insert(family_digest(family)).second); };

  add(TotalFamily({.name = "other"}));
  add(TotalFamily({.version = 2}));
  add(TotalFamily({.sources = {{"total.cuh", "// another text"}}}));
  add(TotalFamily({.sources = {{"other.cuh", "// text"}}}));
  add(TotalFamily({.sources = {{"total.cuh", "// text"}, {"more.cuh", ""}}}));
  add(TotalFamily({.sources = {}}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {128}}, {"work", {1, 2, 4}}, {"finish", {0, 1}}})}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {256, 128}}, {"work", {1, 2, 4}}, {"finish", {0, 1}}})}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {128, 256}}, {"unroll", {1, 2, 4}}, {"finish", {0, 1}}})}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {128, 256}},
                                            {"work", {1, 2, 4}},
                                            {"finish", {0, 1}, {"alone", "together"}}})}));
}

TEST(FamilyDigest, DoesNotLetNeighbouringTextsRunTogether) {
  EXPECT_NE(family_digest(TotalFamily({.sources = {{"ab", "c"}}})),
            family_digest(TotalFamily({.sources = {{"a", "bc"}}})));
}

}  // namespace
}  // namespace hone
