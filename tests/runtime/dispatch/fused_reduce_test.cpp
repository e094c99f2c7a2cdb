// Several reductions in one pass on a real device: each against its reference.
#include <gmock/gmock.h>

#include <hone/fused_reduce.h>

#include "runtime/families/reduce/reduce_reference.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

/// The most that fit, of all sizes of State.
const std::vector<ReduceOp> kMany{ReduceOp::sum,           ReduceOp::min,    ReduceOp::argmax, ReduceOp::mean,
                                  ReduceOp::mean_variance, ReduceOp::minmax, ReduceOp::any,    ReduceOp::count_nonzero};

class FusedReduce : public DeviceTest {
 protected:
  std::size_t result_bytes(ReduceOp op, DType dtype) const {
    return info(reduce_result_dtype(op, dtype)).size_bytes * static_cast<std::size_t>(info(op).outputs);
  }

  std::vector<std::byte> read(const DeviceBuffer& buffer, std::size_t bytes) const {
    std::vector<std::byte> content(bytes);
    device_->copy_to_host(content.data(), buffer.data(), bytes, nullptr);
    device_->synchronize(nullptr);
    return content;
  }

  /// Random bits; of floats 1 ≤ x < 2, of bool 0 and 1.
  template <class T>
  std::vector<std::byte> elements(std::size_t n) const {
    std::mt19937_64 random(n);
    std::vector<std::byte> bytes(n * sizeof(T));
    for (std::size_t i = 0; i < n; ++i) {
      T value{};
      const std::uint64_t bits = random();
      if constexpr (info(kDTypeOf<T>).is_floating())
        value = static_cast<T>(1 + static_cast<float>(bits >> 41) * 0x1p-23f);
      else value = static_cast<T>(kDTypeOf<T> == DType::boolean ? bits & 1 : bits);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  }
};

TEST_F(FusedReduce, EachResultIsRightForEveryDType) {
  Session session(device_, quick());
  const FusedReduction fused(kMany);
  for (const DTypeInfo& dtype : kDTypes) {
    if (!is_due(static_cast<std::size_t>(dtype.dtype), 3)) continue;  // f16, f64, i32, u16 and bool
    for (std::int64_t n : {1, 33, 20000}) {
      for (std::size_t offset : {0u, 1u}) {
        const auto bytes =
            with_element_type(dtype.dtype, [&]<class T>(T) { return elements<T>(static_cast<std::size_t>(n)); });
        const auto in = upload(bytes, offset * dtype.size_bytes);
        std::vector<DeviceBuffer> results;
        std::vector<void*> outs;
        for (std::size_t i = 0; i < kMany.size(); ++i) {
          results.emplace_back(device_, 16);
          outs.push_back(results.back().data());
        }
        tuned_reduce(session, fused, dtype.dtype, in.data, n, outs, nullptr);
        for (std::size_t i = 0; i < kMany.size(); ++i) {
          const std::vector<std::byte> found = read(results[i], result_bytes(kMany[i], dtype.dtype));
          EXPECT_EQ(reduce_reference::verify({.op = kMany[i], .dtype = dtype.dtype}, n, kChain, {&bytes, 1}, found), "")
              << name(kMany[i]) << " of " << n << " " << dtype.name << " at offset " << offset;
        }
      }
    }
  }
}

TEST_F(FusedReduce, TypedCallsCheckTypesWhenTheyAreCompiled) {
  Session session(device_, quick());
  const auto in = upload(std::vector<std::int32_t>{3, -1, 4, 1, -5});
  const DeviceBuffer total(device_, 8), largest(device_, 4), mean_of_all(device_, 8);
  tuned_reduce(session, fuse(sum, max, mean), in.data, 5,
               std::tuple(total.as<std::int64_t>(), largest.as<std::int32_t>(), mean_of_all.as<double>()), nullptr);
  EXPECT_EQ(fetch(total.as<std::int64_t>()), 2);
  EXPECT_EQ(fetch(largest.as<std::int32_t>()), 4);
  EXPECT_EQ(fetch(mean_of_all.as<double>()), 0.4);
}

TEST_F(FusedReduce, NansAreIgnoredByAllOnRequest) {
  Session session(device_, quick());
  const auto in = upload(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN(), 4});
  const DeviceBuffer total(device_, 4), largest(device_, 4);
  const std::tuple outs(total.as<float>(), largest.as<float>());
  tuned_reduce(session, fuse(sum, max), in.data, 3, outs, nullptr, NanPolicy::ignore);
  EXPECT_EQ(fetch(total.as<float>()), 5);
  EXPECT_EQ(fetch(largest.as<float>()), 4);
  tuned_reduce(session, fuse(sum, max), in.data, 3, outs, nullptr);
  EXPECT_TRUE(std::isnan(fetch(total.as<float>())));
  EXPECT_TRUE(std::isnan(fetch(largest.as<float>())));
}

TEST_F(FusedReduce, ATunedWinnerPassesTheReferenceOfEveryOperation) {
  if (!is_cuda()) GTEST_SKIP() << "tuned in other tests on the host device";
  Session session(device_, quick());
  const FusedReduction fused(kMany);
  for (DType dtype : {DType::f16, DType::f32, DType::i8, DType::u64}) {
    const Tuning tuning = session.tune(fused.problem(dtype, 100000), {.budget = std::chrono::milliseconds(500)});
    EXPECT_TRUE(tuning.winner) << info(dtype).name;
    for (const Trial& trial : tuning.trials) EXPECT_NE(trial.verdict, Verdict::wrong) << trial.reason;
  }
}

TEST_F(FusedReduce, AFewAreTunedAndVerifiedTogether) {
  Session session(device_, quick());
  const FusedReduction fused{ReduceOp::product, ReduceOp::argmin, ReduceOp::logsumexp};
  const Tuning tuning = session.tune(fused.problem(DType::f32, 5000), {});
  EXPECT_TRUE(tuning.winner);
  for (const Trial& trial : tuning.trials) EXPECT_NE(trial.verdict, Verdict::wrong) << trial.reason;
}

TEST_F(FusedReduce, EqualListsShareTheirWinners) {
  const FusedReduction one{ReduceOp::sum, ReduceOp::max}, two{ReduceOp::sum, ReduceOp::max};
  const FusedReduction other{ReduceOp::max, ReduceOp::sum};
  EXPECT_EQ(one.problem(DType::f32, 5).family, two.problem(DType::f32, 5).family);
  EXPECT_NE(one.problem(DType::f32, 5).family, other.problem(DType::f32, 5).family);
}

TEST_F(FusedReduce, WhatCannotBeFusedIsNamed) {
  const auto refused = [](std::vector<ReduceOp> ops, const char* why) {
    try {
      FusedReduction{std::span<const ReduceOp>(ops)};
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  refused({}, "without an operation");
  refused({ReduceOp::sum, ReduceOp::dot}, "dot, which takes two arrays");
  refused({ReduceOp::sum, ReduceOp::min, ReduceOp::sum}, "names sum twice");
  refused(std::vector<ReduceOp>(9, ReduceOp::sum), "at most 8");
  refused({static_cast<ReduceOp>(200)}, "operation 200");

  Session session(device_, quick());
  const auto in = upload(std::vector<std::int32_t>{1, 2});
  const DeviceBuffer out(device_, 16);
  void* const outs[] = {out.data(), nullptr};
  const auto call_refused = [&](const FusedReduction& fused, std::int64_t n, std::span<void* const> to,
                                const char* why) {
    try {
      tuned_reduce(session, fused, DType::i32, in.data, n, to, nullptr);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  call_refused({ReduceOp::sum, ReduceOp::max}, 2, outs, "'max' is null");
  call_refused({ReduceOp::sum, ReduceOp::max}, 2, std::span(outs).first(1), "makes 2 results, 1 pointers");
  call_refused({ReduceOp::argmax}, 0, std::span(outs).first(1), "no elements");
  call_refused({ReduceOp::logsumexp}, 2, std::span(outs).first(1), "not defined");
  call_refused({ReduceOp::sum}, -2, std::span(outs).first(1), "no extent can be negative");
}

}  // namespace
}  // namespace hone
