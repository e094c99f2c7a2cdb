// tuned_reduce() on a real device: every operation, dtype, size and alignment against a plain reduction.
#include <gmock/gmock.h>

#include "tests/runtime/support/device_fixture.h"

namespace hone {
namespace {

using testing::HasSubstr;

constexpr std::array kOps{ReduceOp::sum, ReduceOp::min, ReduceOp::max};

class ReduceResults : public DeviceTest {
 protected:
  /// Reduces with tuned_reduce_and_wait(), whatever the result's type.
  template <class T>
  static long double reduce(Session& session, ReduceOp op, const T* in, std::size_t n) {
    const auto size = static_cast<std::int64_t>(n);
    if (op == ReduceOp::sum) return tuned_reduce_and_wait(session, sum, in, size, nullptr);
    if (op == ReduceOp::min) return tuned_reduce_and_wait(session, min, in, size, nullptr);
    return tuned_reduce_and_wait(session, max, in, size, nullptr);
  }

  template <class T>
  void expect_right(Session& session, ReduceOp op, const std::vector<T>& values, std::size_t offset) {
    const auto array = upload(values, offset);
    const auto expected = plain_reduce<T>(op, values);
    const auto found = reduce(session, op, array.data, values.size());
    EXPECT_LE(std::fabs(found - expected), allowed_error<T>(op, values))
        << name(op) << " of " << values.size() << " " << info(kDTypeOf<T>).name << " at offset " << offset << ": "
        << found << " instead of " << expected;
  }
};

template <class T>
class ReduceResultsOf : public ReduceResults {};
using Elements = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ReduceResultsOf, Elements);

TYPED_TEST(ReduceResultsOf, EverySizeAtEveryOffset) {
  Session session(this->device_, this->quick());
  // Tiles have 2^k elements, so that these are a warp, a block and a tile ± 1 of some variant.
  for (std::size_t n : {1u, 2u, 3u, 7u, 31u, 32u, 33u, 127u, 128u, 129u, 1000u, 1023u, 1024u, 1025u, 2047u, 2048u, 2049u,
                        4095u, 4096u, 4097u, 8191u, 8193u, 65537u})
    for (ReduceOp op : kOps)
      for (std::size_t offset : {0u, 1u, 3u})
        this->expect_right(session, op, random_values<TypeParam>(n, static_cast<unsigned>(n)), offset);
}

TYPED_TEST(ReduceResultsOf, AMillionElements) {
  Session session(this->device_, this->quick());
  const auto values = random_values<TypeParam>((1u << 20) + 3);
  for (ReduceOp op : kOps)
    for (std::size_t offset : {0u, 1u}) this->expect_right(session, op, values, offset);
}

TYPED_TEST(ReduceResultsOf, NoElementsGiveTheIdentityAndReadNothing) {
  using Limits = std::numeric_limits<TypeParam>;
  Session session(this->device_, this->quick());
  const TypeParam* const nowhere = nullptr;
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, nowhere, 0, nullptr), 0);
  EXPECT_EQ(tuned_reduce_and_wait(session, min, nowhere, 0, nullptr),
            Limits::has_infinity ? Limits::infinity() : Limits::max());
  EXPECT_EQ(tuned_reduce_and_wait(session, max, nowhere, 0, nullptr),
            Limits::has_infinity ? -Limits::infinity() : Limits::min());
}

TYPED_TEST(ReduceResultsOf, TheExtremeMayBeAnywhere) {
  Session session(this->device_, this->quick());
  for (std::size_t at : {0u, 1u, 2u, 3u, 4u, 500u, 4093u, 4094u, 4095u, 4096u}) {
    std::vector<TypeParam> values(4097, TypeParam{5});
    values[at] = TypeParam{-7};
    this->expect_right(session, ReduceOp::min, values, 1);
    values[at] = TypeParam{9};
    this->expect_right(session, ReduceOp::max, values, 1);
    this->expect_right(session, ReduceOp::sum, values, 1);
  }
}

template <class T>
class ReduceFloats : public ReduceResults {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(ReduceFloats, Floats);

TYPED_TEST(ReduceFloats, ANanAnywhereMakesTheResultNan) {
  Session session(this->device_, this->quick());
  for (std::size_t n : {1u, 33u, 4097u, 100003u}) {
    for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      auto values = random_values<TypeParam>(n);
      values[at] = std::numeric_limits<TypeParam>::quiet_NaN();
      const auto array = this->upload(values, 1);
      for (ReduceOp op : kOps) EXPECT_TRUE(std::isnan(this->reduce(session, op, array.data, n))) << n << " " << at;
    }
  }
}

TYPED_TEST(ReduceFloats, InfinitiesFollowIeeeArithmetic) {
  Session session(this->device_, this->quick());
  constexpr TypeParam kInfinity = std::numeric_limits<TypeParam>::infinity();
  auto values = random_values<TypeParam>(5001);
  values[4999] = kInfinity;
  auto array = this->upload(values);
  EXPECT_EQ(this->reduce(session, ReduceOp::sum, array.data, 5001), kInfinity);
  EXPECT_EQ(this->reduce(session, ReduceOp::max, array.data, 5001), kInfinity);
  EXPECT_LT(this->reduce(session, ReduceOp::min, array.data, 5001), 0);
  values[3] = -kInfinity;
  array = this->upload(values);
  EXPECT_TRUE(std::isnan(this->reduce(session, ReduceOp::sum, array.data, 5001)));
  EXPECT_EQ(this->reduce(session, ReduceOp::min, array.data, 5001), -kInfinity);
  const auto only = this->upload(std::vector<TypeParam>(777, kInfinity));
  EXPECT_EQ(this->reduce(session, ReduceOp::min, only.data, 777), kInfinity);
}

TYPED_TEST(ReduceFloats, NegativeZerosAddUpToZero) {
  Session session(this->device_, this->quick());
  const auto array = this->upload(std::vector<TypeParam>(1000, TypeParam{-0.0}));
  for (ReduceOp op : kOps) EXPECT_EQ(this->reduce(session, op, array.data, 1000), 0);
}

TEST_F(ReduceResults, SumsOfI32AreWideAndSumsOfI64Wrap) {
  Session session(device_, quick());
  const std::vector<std::int32_t> large(100000, std::numeric_limits<std::int32_t>::max());
  const auto of_i32 = upload(large);
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, of_i32.data, 100000, nullptr), 100000 * 2147483647LL);
  const auto of_i64 = upload(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 1});
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, of_i64.data, 2, nullptr), std::numeric_limits<std::int64_t>::min());
}

TEST_F(ReduceResults, SumsAreBitwiseEqualFromRunToRun) {
  Session session(device_, quick());
  const auto array = upload(random_values<float>(300001), 1);
  const float first = tuned_reduce_and_wait(session, sum, array.data, 300001, nullptr);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(tuned_reduce_and_wait(session, sum, array.data, 300001, nullptr), first);
}

TEST_F(ReduceResults, ATunedWinnerIsRightToo) {
  Session session(device_, {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::milliseconds(700), .cache_path = {}});
  const auto values = random_values<float>(50000);
  const auto array = upload(values, 1);
  float found = 0;
  EXPECT_EQ(tuned_reduce_and_wait(session, ReduceOp::sum, DType::f32, array.data, 50000, &found, nullptr).source,
            ChoiceSource::tuned);
  EXPECT_NEAR(found, static_cast<double>(plain_reduce<float>(ReduceOp::sum, values)), 0.01);
  EXPECT_EQ(tuned_reduce_and_wait(session, ReduceOp::sum, DType::f32, array.data, 50000, &found, nullptr).source,
            ChoiceSource::memory);
}

TEST_F(ReduceResults, BadArgumentsAreNamed) {
  Session session(device_, quick());
  const auto array = upload(std::vector<float>(64, 1));
  const DeviceBuffer out(device_, 16);
  const auto expect_refused = [&](const void* in, std::int64_t n, void* to, const char* why) {
    try {
      tuned_reduce(session, ReduceOp::sum, DType::f32, in, n, to, nullptr);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  const auto* bytes = reinterpret_cast<const std::byte*>(array.data);
  for (int round = 0; round < 2; ++round) {  // on a miss and on a hit
    expect_refused(nullptr, 5, out.data(), "'in' is null");
    expect_refused(array.data, 5, nullptr, "'out' is null");
    expect_refused(bytes + 2, 5, out.data(), "not aligned to its 4-byte elements");
    expect_refused(array.data, 5, out.as<std::byte>() + 1, "not aligned to its 4-byte element");
    expect_refused(array.data, -1, out.data(), "cannot be negative");
    expect_refused(array.data, std::numeric_limits<std::int64_t>::max(), out.data(), "no memory holds");
    EXPECT_EQ(tuned_reduce_and_wait(session, sum, array.data, 64, nullptr), 64);
  }
}

TEST_F(ReduceResults, OperationsAndDTypesOutsideOfTheirEnumsAreRefused) {
  Session session(device_, quick());
  const DeviceBuffer memory(device_, 16);
  const auto reduce = [&](int op, int dtype) {
    tuned_reduce(session, static_cast<ReduceOp>(op), static_cast<DType>(dtype), memory.data(), 1, memory.data(), nullptr);
  };
  EXPECT_THROW(reduce(77, 0), Error);
  EXPECT_THROW(reduce(0, 77), Error);
}

TEST_F(ReduceResults, ValidationNamesHostMemory) {
  SessionOptions strict = quick();
  strict.validate_pointers = true;
  Session session(device_, strict);
  const std::vector<float> on_host(100, 1);
  try {
    tuned_reduce_and_wait(session, sum, on_host.data(), 100, nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("host memory"));
  }
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, upload(on_host).data, 100, nullptr), 100);
}

TEST_F(ReduceResults, MoreThanTwoToThe31Elements) {
  if (!is_cuda()) GTEST_SKIP() << "takes too long on the host";
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 5;
  DeviceBuffer in;
  try {
    in = DeviceBuffer(device_, kCount * sizeof(float));
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  Session session(device_, quick());
  device_->fill_bytes(in.data(), 0, kCount * sizeof(float), nullptr);
  const std::vector<float> ends{1, 2, 3, 4, 5};
  device_->copy_to_device(in.as<float>() + kCount - 5, ends.data(), 5 * sizeof(float), nullptr);
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, in.as<float>(), kCount, nullptr), 15);
  EXPECT_EQ(tuned_reduce_and_wait(session, max, in.as<float>(), kCount, nullptr), 5);
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, in.as<float>() + 1, kCount - 1, nullptr), 15);
}

}  // namespace
}  // namespace hone
