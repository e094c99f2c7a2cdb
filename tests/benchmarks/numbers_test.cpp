#include "benchmarks/common/numbers.h"

#include <gmock/gmock.h>

#include <limits>

namespace hone::benchmarks {
namespace {

TEST(Numbers, EveryFloatingDtypeGivesBackWhatWasWritten) {
  for (const DTypeInfo& dtype : kDTypes) {
    if (!dtype.is_floating()) continue;
    std::vector<std::byte> bytes(2 * dtype.size_bytes);
    encode(dtype.dtype, 1.25f, bytes.data());
    encode(dtype.dtype, -0.5f, bytes.data() + dtype.size_bytes);
    EXPECT_THAT(decode(dtype.dtype, bytes), testing::ElementsAre(1.25L, -0.5L)) << dtype.name;
  }
}

TEST(Numbers, SixtyFourBitIntegersAreExact) {
  const std::vector<std::byte> ones(8, std::byte{0xff});
  EXPECT_EQ(decode(DType::u64, ones).front(), static_cast<long double>(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(decode(DType::i64, ones).front(), -1.0L);
}

}  // namespace
}  // namespace hone::benchmarks
