#include "cache/digest.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace hone::cache {
namespace {

TEST(Digest, HasThirtyTwoHexadecimalDigits) {
  const std::string hex = Digest().hex();
  EXPECT_EQ(hex.size(), 32u);
  EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Digest, OfNothingIsThatOfXxhash) {
  EXPECT_EQ(Digest().hex(), "99aa06d3014798d86001c324468d497f");  // `xxhsum -H2` of an empty input
}

TEST(Digest, IsTheSameInEveryVersion) {
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{2}};
  const std::string hex = Digest().add("a", "text").add("b", bytes).add("c", std::int64_t{-7}).add("d", 0.5).hex();
  EXPECT_EQ(hex, "5aac347fe34905f725c15072ad2d0765");
}

TEST(Digest, ManyAndLongFieldsAreThoseOfXxhash) {
  Digest digest;
  for (std::int64_t i = 0; i < 200; ++i) digest.add("count", i);
  digest.add("text", std::string(5000, 'x')).add(std::string(3000, 't'), "y").add("last", std::int64_t{1});
  EXPECT_EQ(digest.hex(), "5b9a1eb351f9caf628cd67b005100587");  // `xxhsum -H2` of all of these bytes in a row
}

TEST(Digest, SameFieldsGiveTheSameDigest) {
  EXPECT_EQ(Digest().add("a", "x").add("b", 1.5).hex(), Digest().add("a", "x").add("b", 1.5).hex());
}

TEST(Digest, NeighbouringFieldsDoNotRunTogether) {
  EXPECT_NE(Digest().add("t", "ab").add("t", "c").hex(), Digest().add("t", "a").add("t", "bc").hex());
  EXPECT_NE(Digest().add("ta", "b").hex(), Digest().add("t", "ab").hex());
  EXPECT_NE(Digest().add("t", "").hex(), Digest().hex());
}

TEST(Digest, OrderAndTagsCount) {
  EXPECT_NE(Digest().add("a", "1").add("b", "2").hex(), Digest().add("b", "2").add("a", "1").hex());
  EXPECT_NE(Digest().add("a", "1").hex(), Digest().add("b", "1").hex());
}

TEST(Digest, TypesCount) {
  const std::vector<std::byte> zero(8);
  const std::vector<std::string> digests{Digest().add("t", std::int64_t{0}).hex(), Digest().add("t", 0.0).hex(),
                                         Digest().add("t", zero).hex(), Digest().add("t", std::string(8, '\0')).hex()};
  for (std::size_t i = 0; i < digests.size(); ++i) {
    for (std::size_t k = i + 1; k < digests.size(); ++k) EXPECT_NE(digests[i], digests[k]) << i << " and " << k;
  }
}

TEST(Digest, MinusZeroCountsAsZero) { EXPECT_EQ(Digest().add("t", -0.0).hex(), Digest().add("t", 0.0).hex()); }

TEST(Digest, AllNaNsAreAlike) {
  using Limits = std::numeric_limits<double>;
  EXPECT_EQ(Digest().add("t", Limits::quiet_NaN()).hex(), Digest().add("t", -Limits::signaling_NaN()).hex());
  EXPECT_NE(Digest().add("t", Limits::infinity()).hex(), Digest().add("t", Limits::quiet_NaN()).hex());
}

TEST(Digest, HexMayBeAskedForInBetween) {
  Digest digest;
  digest.add("a", "x");
  const std::string first = digest.hex();
  EXPECT_EQ(digest.hex(), first);
  EXPECT_NE(digest.add("b", "y").hex(), first);
}

}  // namespace
}  // namespace hone::cache
