// tuned_reduce_rows() and tuned_reduce_columns() on a real device, against plain loops.
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <hone/reduce_axis.h>

#include "runtime/families/expectation.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/reduce_axis/axis_family.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/temp_folder.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class ReduceAxis : public DeviceTest {
 protected:
  template <class T>
  std::vector<T> fetch_all(const DeviceBuffer& memory, std::size_t count) const {
    std::vector<T> values(count);
    device_->copy_to_host(values.data(), memory.data(), count * sizeof(T), nullptr);
    device_->synchronize(nullptr);
    return values;
  }

  /// Reduces both ways and compares every output, the value behind the last, too.
  void expect_right(Session& session, const ColumnsShape& shape, std::size_t offset) const {
    const std::int64_t pitch = shape.pitch == 0 ? shape.inner : shape.pitch;
    const std::int64_t elements = shape.outer * shape.reduced * pitch;
    std::vector<std::int32_t> values = random_values<std::int32_t>(static_cast<std::size_t>(elements));
    for (std::int32_t& value : values) value %= 1000;  // ties
    const auto in = upload(values, offset);
    const std::int64_t outputs = shape.outer * shape.inner;
    const auto count = static_cast<std::size_t>(outputs);
    const DeviceBuffer memory(device_, (count + 1) * 8);
    const auto check = [&](const std::vector<std::int64_t>& found,
                           const std::function<std::int64_t(std::int64_t, std::int64_t)>& expected) {
      for (std::int64_t o = 0; o < shape.outer; ++o)
        for (std::int64_t i = 0; i < shape.inner; ++i)
          ASSERT_EQ(found[static_cast<std::size_t>(o * shape.inner + i)], expected(o, i))
              << shape.outer << " × " << shape.reduced << " × " << shape.inner << " pitch " << pitch << " at " << o
              << " " << i;
      ASSERT_EQ(found[count], -1) << "wrote behind the results";
    };
    const auto value = [&](std::int64_t o, std::int64_t r, std::int64_t i) {
      return values[static_cast<std::size_t>((o * shape.reduced + r) * pitch + i)];
    };
    device_->fill_bytes(memory.data(), 0xff, memory.size_bytes(), nullptr);
    tuned_reduce_columns(session, sum, in.data, shape, memory.as<std::int64_t>(), nullptr);
    check(fetch_all<std::int64_t>(memory, count + 1), [&](std::int64_t o, std::int64_t i) {
      std::int64_t total = 0;
      for (std::int64_t r = 0; r < shape.reduced; ++r) total += value(o, r, i);
      return total;
    });
    if (shape.reduced == 0) return;
    device_->fill_bytes(memory.data(), 0xff, memory.size_bytes(), nullptr);
    tuned_reduce_columns(session, argmax, in.data, shape, memory.as<std::int64_t>(), nullptr);
    check(fetch_all<std::int64_t>(memory, count + 1), [&](std::int64_t o, std::int64_t i) {
      std::int64_t best = 0;
      for (std::int64_t r = 1; r < shape.reduced; ++r)
        if (value(o, r, i) > value(o, best, i)) best = r;
      return best;
    });
  }
};

TEST_F(ReduceAxis, EveryResultIsThatOfAPlainLoop) {
  Session session(device_, quick());
  for (const ColumnsShape& shape : {ColumnsShape{1, 1, 5}, ColumnsShape{1, 300, 7}, ColumnsShape{1, 33, 1025},
                                    ColumnsShape{150, 6, 3}, ColumnsShape{2, 31, 100, 103}, ColumnsShape{1, 3, 0},
                                    ColumnsShape{2, 0, 3}, ColumnsShape{3, 5, 1, 2}})
    expect_right(session, shape, 1);
}

TEST_F(ReduceAxis, RowsAreColumnsWhoseInnerExtentIsOne) {
  Session session(device_, quick());
  for (const auto& [rows, columns, offset] : {std::array{1, 1, 0}, std::array{5, 4000, 1}, std::array{1000, 7, 3},
                                              std::array{77, 16, 0}, std::array{4, 0, 0}})
    expect_right(session, {.outer = rows, .reduced = columns, .inner = 1}, static_cast<std::size_t>(offset));
}

TEST_F(ReduceAxis, GapsOfAPitchChangeNothing) {
  Session session(device_, quick());
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [rows, columns, pitch] : {std::array{40, 13, 16}, std::array{9, 333, 335}}) {
    std::vector<float> values(static_cast<std::size_t>(rows * pitch), kNan);
    for (int r = 0; r < rows; ++r) std::fill_n(values.begin() + r * pitch, columns, static_cast<float>(r));
    const auto in = upload(values);
    const DeviceBuffer out(device_, static_cast<std::size_t>(rows) * sizeof(float));
    tuned_reduce_rows(session, max, in.data, {rows, columns, pitch}, out.as<float>(), nullptr);
    const std::vector<float> found = fetch_all<float>(out, static_cast<std::size_t>(rows));
    for (int r = 0; r < rows; ++r) EXPECT_EQ(found[static_cast<std::size_t>(r)], static_cast<float>(r));
    const DeviceBuffer of_columns(device_, static_cast<std::size_t>(columns) * sizeof(float));
    tuned_reduce_columns(session, max, in.data, {.reduced = rows, .inner = columns, .pitch = pitch},
                         of_columns.as<float>(), nullptr);
    EXPECT_THAT(fetch_all<float>(of_columns, static_cast<std::size_t>(columns)),
                testing::Each(static_cast<float>(rows - 1)));
  }
}

TEST_F(ReduceAxis, TwoValuesOfARowLieSideBySide) {
  Session session(device_, quick());
  const auto in = upload(std::vector<float>{3, 1, 2, 9, 7, 8}, 1);
  const DeviceBuffer out(device_, 4 * sizeof(float));
  tuned_reduce_rows(session, minmax, in.data, {2, 3}, out.as<float>(), nullptr);
  EXPECT_THAT(fetch_all<float>(out, 4), testing::ElementsAre(1, 3, 7, 9));
}

TEST_F(ReduceAxis, LogsumexpOfRowsAndOfColumns) {
  Session session(device_, quick());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto in = upload(std::vector<float>{1000, 1000, -kInfinity, -kInfinity, 0, -kInfinity});
  const DeviceBuffer out(device_, 3 * sizeof(float));
  tuned_logsumexp(session, in.data, RowsShape{3, 2}, out.as<float>(), nullptr);
  EXPECT_THAT(fetch_all<float>(out, 3),
              testing::ElementsAre(testing::FloatNear(1000 + std::log(2.0f), 1e-4f), -kInfinity, 0));
  tuned_logsumexp(session, in.data, ColumnsShape{.reduced = 3, .inner = 2}, out.as<float>(), nullptr);
  EXPECT_THAT(fetch_all<float>(out, 2), testing::ElementsAre(1000, 1000));
}

TEST_F(ReduceAxis, EmptyRowsGiveTheIdentityAndNoRowsNothing) {
  Session session(device_, quick());
  const DeviceBuffer out(device_, 3 * sizeof(float));
  device_->fill_bytes(out.data(), 0, out.size_bytes(), nullptr);
  const float* nothing = nullptr;
  tuned_reduce_rows(session, product, nothing, {3, 0}, out.as<float>(), nullptr);
  EXPECT_THAT(fetch_all<float>(out, 3), testing::Each(1.0f));
  const Choice choice = tuned_reduce_rows(session, product, nothing, {0, 5}, static_cast<float*>(nullptr), nullptr);
  EXPECT_EQ(choice.winner, nullptr);
  EXPECT_THAT(fetch_all<float>(out, 3), testing::Each(1.0f));
}

TEST_F(ReduceAxis, BadArgumentsAreNamed) {
  Session session(device_, quick());
  const auto in = upload(std::vector<float>(64, 1));
  const DeviceBuffer out(device_, 64 * 8);
  const auto expect_refused = [&](const std::function<void()>& call, const char* why) {
    try {
      call();
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  const auto rows = [&](const ReduceSpec& spec, const RowsShape& shape, const void* from, void* to) {
    return [&, spec, shape, from, to] { tuned_reduce_rows(session, spec, from, shape, to, nullptr); };
  };
  const auto columns = [&](const ColumnsShape& shape) {
    return [&, shape] { tuned_reduce_columns(session, ReduceSpec{}, in.data, shape, out.data(), nullptr); };
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const auto* bytes = reinterpret_cast<const std::byte*>(in.data);
  for (int round = 0; round < 2; ++round) {  // on a miss and on a hit
    expect_refused(rows({}, {-1, 4}, in.data, out.data()), "no extent can be negative");
    expect_refused(rows({}, {4, -1}, in.data, out.data()), "no extent can be negative");
    expect_refused(rows({}, {8, 8, 7}, in.data, out.data()), "pitch of 7: rows would overlap");
    expect_refused(rows({}, {8, 8, -8}, in.data, out.data()), "a pitch of -8");
    expect_refused(rows({}, {kHuge, kHuge}, in.data, out.data()), "no memory holds");
    expect_refused(rows({}, {kHuge, 0, kHuge}, in.data, out.data()), "no memory holds");
    expect_refused(rows({}, {8, 8}, nullptr, out.data()), "'in' is null");
    expect_refused(rows({}, {8, 8}, in.data, nullptr), "'out' is null");
    expect_refused(rows({}, {8, 7}, bytes + 2, out.data()), "not aligned to 4 bytes");
    expect_refused(rows({.op = ReduceOp::dot}, {8, 8}, in.data, out.data()), "tuned_dot()");
    expect_refused(rows({.op = ReduceOp::argmin}, {8, 0}, in.data, out.data()), "no elements");
    expect_refused(rows({.op = ReduceOp::logsumexp, .dtype = DType::i32}, {8, 8}, in.data, out.data()), "not defined");
    expect_refused(rows({.result = DType::i64}, {8, 8}, in.data, out.data()), "cannot be stored as i64");
    expect_refused(rows({.dtype = static_cast<DType>(77)}, {8, 8}, in.data, out.data()), "there is no dtype 77");
    expect_refused(columns({.outer = 2, .reduced = 4, .inner = 8, .pitch = 5}), "rows would overlap");
    expect_refused(columns({.outer = kHuge, .reduced = kHuge, .inner = 2}), "no memory holds");
    expect_refused(columns({.outer = 2, .reduced = -4, .inner = 8}), "no extent can be negative");
    tuned_reduce_rows(session, ReduceSpec{}, in.data, {8, 8}, out.data(), nullptr);
    EXPECT_EQ(fetch(out.as<float>() + 7), 8);
  }
}

TEST_F(ReduceAxis, ATunedWinnerServesEveryPitch) {
  Session session(device_,
                  {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::seconds(4), .cache_path = {}});
  const auto in = upload(std::vector<std::int32_t>(3000, 2));
  const DeviceBuffer out(device_, 100 * 8);
  EXPECT_EQ(tuned_reduce_rows(session, sum, in.data, {100, 9}, out.as<std::int64_t>(), nullptr).source,
            ChoiceSource::tuned);
  EXPECT_EQ(tuned_reduce_rows(session, sum, in.data, {100, 9, 30}, out.as<std::int64_t>(), nullptr).source,
            ChoiceSource::memory);
  EXPECT_THAT(fetch_all<std::int64_t>(out, 100), testing::Each(18));
}

/// 32 threads for a row of 65 floats are no more than twice its 17 packs; a row of 60 has 15.
TEST_F(ReduceAxis, AWinnerServesEveryMemberOfItsClass) {
  const TempFolder folder;
  const auto rows_of = [](std::int64_t columns) {
    return reduce_rows_problem({.op = ReduceOp::sum, .dtype = DType::f32}, {.rows = 100, .columns = columns}, 4);
  };
  ASSERT_EQ(ProblemClass(rows_of(65)), ProblemClass(rows_of(60)));
  const Policy a_warp_a_row = Policy::of(RowsPolicy{.block_threads = 128, .scope = Scope::warp, .threads_per_row = 32});
  SessionOptions options{.on_miss = MissPolicy::error, .cache_path = folder / "cache.sqlite"};
  Session session(device_, options);
  ASSERT_TRUE(
      session.tune(rows_of(65), {.budget = std::chrono::seconds(20), .only = {Candidate{a_warp_a_row, {2}}}}).winner);
  EXPECT_EQ(session.prepare(rows_of(60)).source, ChoiceSource::memory);
  Session later(device_, options);
  const Choice choice = later.prepare(rows_of(60));
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(choice.winner->candidate.policy, a_warp_a_row);
}

/// A conversion of several elements at once has to give each its own value.
TEST_F(ReduceAxis, ConvertsEveryPatternOfAByteAtEveryPlaceOfAPack) {
  Session session(device_, quick());
  constexpr std::size_t kPlaces = 16, kRows = 256 * kPlaces;
  for (const DTypeInfo& dtype : kDTypes) {
    if (dtype.size_bytes != 1 || dtype.kind == DTypeKind::boolean) continue;
    std::vector<std::byte> patterns(256), values(kRows * kPlaces);
    for (std::size_t row = 0; row < kRows; ++row) {
      patterns[row % 256] = static_cast<std::byte>(row);
      values[row * kPlaces + row / 256] = patterns[row % 256];
    }
    const std::vector<long double> expected = reduce_reference::decode(dtype.dtype, patterns);
    const auto in = upload(values, 0);
    const DeviceBuffer out(device_, kRows * sizeof(float));
    const ReduceSpec spec{.op = ReduceOp::sum, .dtype = dtype.dtype, .result = DType::f32};
    tuned_reduce_rows(session, spec, in.data, {.rows = kRows, .columns = kPlaces}, out.data(), nullptr);
    const std::vector<float> found = fetch_all<float>(out, kRows);
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto value = static_cast<float>(expected[row % 256]);
      if (std::isnan(value)) ASSERT_TRUE(std::isnan(found[row])) << dtype.name << row;
      else ASSERT_EQ(found[row], value) << dtype.name << ' ' << row;
    }
  }
}

}  // namespace
}  // namespace hone
