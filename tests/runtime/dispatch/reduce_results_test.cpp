// tuned_reduce() on a real device: every operation and dtype against the reference, at awkward sizes and addresses.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "runtime/families/reduce/reduce_reference.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

using Patterns = std::vector<std::vector<std::byte>>;

std::string describe(const ReduceSpec& spec, std::int64_t n, std::string_view what) {
  return fmt::format("{} {} in {} to {} n={} {}{}", name(spec.op), info(spec.dtype).name,
                     info(spec.accumulator_dtype()).name, info(spec.result_dtype()).name, n, what,
                     spec.nan == NanPolicy::ignore ? ", NaN ignored" : "");
}

class ReduceResults : public DeviceTest {
 protected:
  /// Device memory that holds `pattern`, over and over, `offset` bytes behind an address that is aligned to 256 bytes.
  Array<std::byte> place(const std::vector<std::byte>& pattern, std::size_t bytes, std::size_t offset) const {
    std::vector<std::byte> content(bytes);
    for (std::size_t at = 0; at < bytes; at += pattern.size())
      std::copy_n(pattern.begin(), std::min(pattern.size(), bytes - at),
                  content.begin() + static_cast<std::ptrdiff_t>(at));
    return upload(content, offset);
  }

  std::vector<std::byte> reduce(Session& session, const ReduceSpec& spec, const Patterns& inputs, std::int64_t n,
                                std::size_t offset) const {
    const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
    const DeviceBuffer out(device_, bytes);
    device_->fill_bytes(out.data(), 0xA5, bytes, nullptr);
    const std::size_t in_bytes = static_cast<std::size_t>(n) * info(spec.dtype).size_bytes;
    const Array<std::byte> first = place(inputs[0], in_bytes, offset);
    if (info(spec.op).inputs == 1) {
      tuned_reduce(session, spec, first.data, n, out.data(), nullptr);
    } else {
      const Array<std::byte> second = place(inputs[1], in_bytes, offset);
      tuned_dot(session, spec, first.data, second.data, n, out.data(), nullptr);
    }
    std::vector<std::byte> result(bytes);
    device_->copy_to_host(result.data(), out.data(), bytes, nullptr);
    device_->synchronize(nullptr);
    return result;
  }

  void expect_right(Session& session, const ReduceSpec& spec, std::int64_t n, std::string_view kind,
                    std::size_t offset_elements) const {
    Patterns inputs;
    for (int i = 0; i < info(spec.op).inputs; ++i)
      inputs.push_back(reduce_reference::input_pattern(spec, i, n, kind));
    const std::size_t offset = offset_elements * info(spec.dtype).size_bytes;
    const std::vector<std::byte> found = reduce(session, spec, inputs, n, offset);
    EXPECT_EQ(reduce_reference::verify(spec, n, kChain, inputs, found), "")
        << describe(spec, n, kind) << " at offset " << offset_elements;
  }

  /// Reduces no elements and reads none.
  void expect_identity(Session& session, const ReduceSpec& spec) const {
    const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
    const DeviceBuffer out(device_, bytes);
    const auto call = [&] {
      if (info(spec.op).inputs == 2) return tuned_dot(session, spec, nullptr, nullptr, 0, out.data(), nullptr);
      return tuned_reduce(session, spec, nullptr, 0, out.data(), nullptr);
    };
    if (info(spec.op).needs_elements) {
      EXPECT_THROW(call(), Error) << describe(spec, 0, "");
      return;
    }
    call();
    std::vector<std::byte> found(bytes);
    device_->copy_to_host(found.data(), out.data(), bytes, nullptr);
    device_->synchronize(nullptr);
    EXPECT_EQ(reduce_reference::verify(spec, 0, kChain, Patterns(2), found), "") << describe(spec, 0, "");
  }
};

/// Each operation apart, so that they run side by side.
class ReduceOperation : public ReduceResults, public testing::WithParamInterface<ReduceOp> {
 protected:
  static std::vector<DType> dtypes() {
    std::vector<DType> dtypes;
    for (const DTypeInfo& dtype : kDTypes)
      if (reduce_supports(GetParam(), dtype.dtype)) dtypes.push_back(dtype.dtype);
    return dtypes;
  }
};

TEST_P(ReduceOperation, IsRightForEveryDTypeOnEveryKindOfInputAndOnNoneAtAll) {
  Session session(device_, quick());
  auto turn = static_cast<std::size_t>(GetParam());
  for (DType dtype : dtypes()) {
    if (!test::in_share(turn++)) continue;
    const ReduceSpec spec{.op = GetParam(), .dtype = dtype};
    for (std::string_view kind : reduce_reference::input_kinds(spec))
      for (std::int64_t n : {1, 2, 31, 32, 33, 127, 300})
        for (std::size_t offset : {0u, 1u, 3u}) expect_right(session, spec, n, kind, offset);
    expect_identity(session, spec);
  }
}

TEST_P(ReduceOperation, IgnoresNansOnRequest) {
  Session session(device_, quick());
  auto turn = static_cast<std::size_t>(GetParam());
  for (DType dtype : dtypes()) {
    if (!info(dtype).is_floating() || !test::in_share(turn++)) continue;
    const ReduceSpec spec{.op = GetParam(), .dtype = dtype, .nan = NanPolicy::ignore};
    for (std::string_view kind : reduce_reference::input_kinds(spec))
      for (std::int64_t n : {1, 33, 300}) expect_right(session, spec, n, kind, 1);
  }
}

TEST_P(ReduceOperation, IsRightAcrossBlocksAndTiles) {
  Session session(device_, quick());
  // Some dtypes in turns, so that the operations together see all; each is compiled.
  const std::vector<DType> all = dtypes();
  const std::size_t step = is_cuda() ? 3 : 6;
  const auto op = static_cast<std::size_t>(GetParam());
  for (std::size_t i = op % step; i < all.size(); i += step) {
    if (!test::in_share(op + i / step)) continue;
    const ReduceSpec spec{.op = GetParam(), .dtype = all[i]};
    const auto kinds = reduce_reference::input_kinds(spec);
    for (std::int64_t n : {4095, 4096, 4097})
      expect_right(session, spec, n, kinds[static_cast<std::size_t>(n) % kinds.size()], 1);
    for (std::size_t offset : {0u, 1u}) expect_right(session, spec, (1 << 18) + 3, kinds.front(), offset);
  }
}

TEST_P(ReduceOperation, ConvertsToEveryAccumulatorAndResultThatMayBeChosen) {
  Session session(device_, quick());
  const std::vector<DType> all = dtypes();
  std::size_t turn = static_cast<std::size_t>(GetParam());
  for (DType dtype : all)
    for (const DTypeInfo& accumulator : kDTypes)
      for (const DTypeInfo& result : kDTypes) {
        if (!reduce_accepts_accumulator(GetParam(), dtype, accumulator.dtype) ||
            !reduce_accepts_result(GetParam(), dtype, accumulator.dtype, result.dtype))
          continue;
        if (!is_due(++turn, 47)) continue;
        const ReduceSpec spec{
            .op = GetParam(), .dtype = dtype, .accumulator = accumulator.dtype, .result = result.dtype};
        for (std::string_view kind : reduce_reference::input_kinds(spec)) expect_right(session, spec, 77, kind, 0);
      }
}

TEST_F(ReduceResults, SignedFactorsInAnUnsignedAccumulatorKeepTheirSigns) {
  Session session(device_, quick());
  for (DType dtype : {DType::i8, DType::i16, DType::i32})
    expect_right(session, {.op = ReduceOp::product, .dtype = dtype, .accumulator = DType::u64}, 77, "uniform", 0);
}

INSTANTIATE_TEST_SUITE_P(Ops, ReduceOperation, testing::ValuesIn([] {
                           std::vector<ReduceOp> ops;
                           for (const ReduceOpInfo& op : kReduceOps) ops.push_back(op.op);
                           return ops;
                         }()),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_F(ReduceResults, TheExtremeMayBeAnywhere) {
  Session session(device_, quick());
  for (std::int64_t at : {0, 1, 2, 3, 4, 500, 4093, 4094, 4095, 4096}) {
    std::vector<float> values(4097, 5);
    values[static_cast<std::size_t>(at)] = -7;
    const auto low = upload(values, 1);
    EXPECT_EQ(tuned_reduce_and_wait(session, min, low.data, 4097, nullptr), -7) << at;
    EXPECT_EQ(tuned_reduce_and_wait(session, argmin, low.data, 4097, nullptr), at);
    values[static_cast<std::size_t>(at)] = 9;
    const auto high = upload(values, 1);
    EXPECT_EQ(tuned_reduce_and_wait(session, max, high.data, 4097, nullptr), 9) << at;
    EXPECT_EQ(tuned_reduce_and_wait(session, argmax, high.data, 4097, nullptr), at);
  }
}

TEST_F(ReduceResults, TheLowestIndexWinsTiesAndNans) {
  Session session(device_, quick());
  std::vector<float> values(5000, 1);
  const auto equal = upload(values);
  EXPECT_EQ(tuned_reduce_and_wait(session, argmin, equal.data, 5000, nullptr), 0);
  EXPECT_EQ(tuned_reduce_and_wait(session, argmax, equal.data + 1, 4999, nullptr), 0);
  for (std::size_t at : {700u, 701u, 4900u}) values[at] = std::numeric_limits<float>::quiet_NaN();
  const auto nans = upload(values);
  EXPECT_EQ(tuned_reduce_and_wait(session, argmin, nans.data, 5000, nullptr), 700);
  EXPECT_EQ(tuned_reduce_and_wait(session, argmax, nans.data, 5000, nullptr), 700);
  EXPECT_EQ(tuned_reduce_and_wait(session, argmax, nans.data, 5000, nullptr, NanPolicy::ignore), 0);
}

TEST_F(ReduceResults, LongArraysBeginAnywhereInALine) {
  Session session(device_, quick());
  std::vector<std::int8_t> values(170'000'000, 1);  // so long that the packs before the first line are apart
  const auto n = static_cast<std::int64_t>(values.size());
  for (std::size_t offset : {1u, 250u}) {
    const auto ones = upload(values, offset);
    EXPECT_EQ(tuned_reduce_and_wait(session, sum, ones.data, n, nullptr), n) << offset;
    EXPECT_EQ(tuned_reduce_and_wait(session, argmax, ones.data, n, nullptr), 0) << offset;
  }
  for (std::int64_t at : {15, 238, 239, 255}) {
    values[static_cast<std::size_t>(at)] = 3;
    const auto one_is_larger = upload(values, 1);
    EXPECT_EQ(tuned_reduce_and_wait(session, argmax, one_is_larger.data, n, nullptr), at);
    values[static_cast<std::size_t>(at)] = 1;
  }
}

TEST_F(ReduceResults, DotTakesArraysThatAreOutOfStep) {
  Session session(device_, quick());
  const std::vector<float> ones(3001, 1);
  const DeviceBuffer out(device_, sizeof(float));
  for (std::size_t first : {0u, 1u, 2u})
    for (std::size_t second : {0u, 1u, 3u}) {
      const auto a = upload(ones, first);
      const auto b = upload(ones, second);
      tuned_dot(session, a.data, b.data, 3001, out.as<float>(), nullptr);
      EXPECT_EQ(fetch(out.as<float>()), 3001) << first << " " << second;
    }
}

TEST_F(ReduceResults, TypedCallsChooseTheResultByItsPointer) {
  Session session(device_, quick());
  const auto in = upload(std::vector<std::uint8_t>(1000, 200));
  const DeviceBuffer out(device_, 16);
  tuned_reduce(session, sum, in.data, 1000, out.as<std::uint8_t>(), nullptr);
  EXPECT_EQ(fetch(out.as<std::uint8_t>()), 200000 % 256);
  tuned_reduce(session, sum, in.data, 1000, out.as<double>(), nullptr);
  EXPECT_EQ(fetch(out.as<double>()), 200000);
  tuned_reduce(session, mean, in.data, 1000, out.as<bfloat16>(), nullptr);
  EXPECT_EQ(static_cast<float>(fetch(out.as<bfloat16>())), 200);
  tuned_reduce(session, minmax, in.data, 1000, out.as<std::uint8_t>(), nullptr);
  EXPECT_EQ(fetch(out.as<std::uint8_t>() + 1), 200);
  EXPECT_EQ(tuned_reduce_and_wait(session, mean, in.data, 1000, nullptr), 200.0);
  EXPECT_TRUE(tuned_reduce_and_wait(session, any, in.data, 1000, nullptr));
}

TEST_F(ReduceResults, WithoutInfinityWhatIsTooLargeBecomesNan) {
  using f8 = float8_e4m3fn;
  Session session(device_, quick());
  const auto in = upload(std::vector<f8>{f8(-448), f8(448), f8(1), f8(-0.0f), f8(0x1p-9f), f8(NAN)}, 1);
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, in.data, 5, nullptr), 1 + 0x1p-9f);
  EXPECT_EQ(static_cast<float>(tuned_reduce_and_wait(session, max, in.data, 5, nullptr)), 448);
  EXPECT_EQ(static_cast<float>(tuned_reduce_and_wait(session, min, in.data, 5, nullptr)), -448);
  EXPECT_EQ(tuned_reduce_and_wait(session, range, in.data, 5, nullptr), 896);
  EXPECT_FALSE(tuned_reduce_and_wait(session, any, in.data + 3, 1, nullptr)) << "the −0";
  EXPECT_EQ(tuned_reduce_and_wait(session, argmax, in.data, 6, nullptr), 5) << "the NaN";
  EXPECT_TRUE(std::isnan(static_cast<float>(tuned_reduce_and_wait(session, max, in.data, 6, nullptr))));
  EXPECT_TRUE(std::isnan(static_cast<float>(tuned_reduce_and_wait(session, max, in.data, 0, nullptr))));

  const DeviceBuffer out(device_, 1);
  const auto stored = [&](auto op, std::int64_t n) {
    tuned_reduce(session, op, in.data + 1, n, out.as<f8>(), nullptr);
    return static_cast<float>(fetch(out.as<f8>()));
  };
  EXPECT_EQ(stored(sum, 2), 448) << "449, rounded";
  EXPECT_TRUE(std::isnan(stored(sum_of_squares, 2)));
}

TEST_F(ReduceResults, SumsAreBitwiseEqualFromRunToRun) {
  Session session(device_, quick());
  const auto array = upload(random_values<float>(300001), 1);
  const float first = tuned_reduce_and_wait(session, sum, array.data, 300001, nullptr);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(tuned_reduce_and_wait(session, sum, array.data, 300001, nullptr), first);
}

TEST_F(ReduceResults, ATunedWinnerIsRightToo) {
  Session session(device_,
                  {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::seconds(4), .cache_path = {}});
  const ReduceSpec spec{};
  constexpr std::int64_t kSize = reduce_reference::kInputPeriod;
  const Patterns patterns{reduce_reference::input_pattern(spec, 0, kSize, "uniform")};
  const auto array = place(patterns[0], patterns[0].size(), 4);
  std::vector<std::byte> found(4);
  EXPECT_EQ(tuned_reduce_and_wait(session, spec, array.data, kSize, found.data(), nullptr).source, ChoiceSource::tuned);
  EXPECT_EQ(reduce_reference::verify(spec, kSize, kChain, patterns, found), "");
  EXPECT_EQ(tuned_reduce_and_wait(session, spec, array.data, kSize, found.data(), nullptr).source,
            ChoiceSource::memory);
}

TEST_F(ReduceResults, BadArgumentsAreNamed) {
  Session session(device_, quick());
  const auto array = upload(std::vector<float>(64, 1));
  const DeviceBuffer out(device_, 16);
  const ReduceSpec sum_f32{};
  const auto expect_refused = [&](const ReduceSpec& spec, const void* in, std::int64_t n, void* to, const char* why) {
    try {
      tuned_reduce(session, spec, in, n, to, nullptr);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  const auto* bytes = reinterpret_cast<const std::byte*>(array.data);
  for (int round = 0; round < 2; ++round) {  // on a miss and on a hit
    expect_refused(sum_f32, nullptr, 5, out.data(), "'in' is null");
    expect_refused(sum_f32, array.data, 5, nullptr, "'out' is null");
    expect_refused(sum_f32, bytes + 2, 5, out.data(), "not aligned to 4 bytes");
    expect_refused(sum_f32, array.data, 5, out.as<std::byte>() + 1, "not aligned to 4 bytes");
    expect_refused(sum_f32, array.data, -1, out.data(), "no extent can be negative");
    expect_refused(sum_f32, array.data, std::numeric_limits<std::int64_t>::max(), out.data(), "no memory holds");
    expect_refused({.op = ReduceOp::dot}, array.data, 5, out.data(), "tuned_dot");
    expect_refused({.op = ReduceOp::argmax}, array.data, 0, out.data(), "no elements");
    expect_refused({.op = ReduceOp::logsumexp, .dtype = DType::i32}, array.data, 5, out.data(), "not defined");
    expect_refused({.accumulator = DType::i64}, array.data, 5, out.data(), "cannot be accumulated in i64");
    expect_refused({.result = DType::i64}, array.data, 5, out.data(), "cannot be stored as i64");
    expect_refused({.op = ReduceOp::max, .result = DType::f64}, array.data, 5, out.data(), "cannot be stored as f64");
    EXPECT_EQ(tuned_reduce_and_wait(session, sum, array.data, 64, nullptr), 64);
  }
}

TEST_F(ReduceResults, OperationsAndDTypesOutsideOfTheirEnumsAreRefused) {
  Session session(device_, quick());
  const DeviceBuffer memory(device_, 16);
  const auto reduce = [&](const ReduceSpec& spec) {
    tuned_reduce(session, spec, memory.data(), 1, memory.data(), nullptr);
  };
  EXPECT_THROW(reduce({.op = static_cast<ReduceOp>(77)}), Error);
  EXPECT_THROW(reduce({.dtype = static_cast<DType>(77)}), Error);
  EXPECT_THROW(reduce({.accumulator = static_cast<DType>(13)}), Error);
  EXPECT_THROW(reduce({.result = static_cast<DType>(14)}), Error);
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
    EXPECT_THAT(error.what(), Names("host", "memory"));
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
  EXPECT_EQ(tuned_reduce_and_wait(session, argmax, in.as<float>(), kCount, nullptr), kCount - 1);
  EXPECT_EQ(tuned_reduce_and_wait(session, count_nonzero, in.as<float>(), kCount, nullptr), 5);
  EXPECT_EQ(tuned_reduce_and_wait(session, sum, in.as<float>() + 1, kCount - 1, nullptr), 15);
}

}  // namespace
}  // namespace hone
