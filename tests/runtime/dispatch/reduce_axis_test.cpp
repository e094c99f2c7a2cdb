// tuned_reduce_rows() and tuned_reduce_columns() on a real device, against plain loops; and every way in which threads
// can share the work, launched directly, against the families' reference.
#include <gmock/gmock.h>

#include <functional>

#include <fmt/format.h>
#include <hone/reduce_axis.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/expectation.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/reduce_axis/axis_policies.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/sanitized.h"
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

/// logsumexp of awkward orders, of an array, of rows and of columns.
template <class T>
class LogsumexpOrders : public ReduceAxis {
 protected:
  /// Long enough that a thread takes several tiles, and no multiple of any.
  static constexpr std::int64_t kLength = 20001;

  static T of(double value) {
    if constexpr (sizeof(T) == 2) return T(static_cast<float>(value));
    else return static_cast<T>(value);
  }

  /// `value(i)` is element i of an array. Every other row and column is that array; those between are alike throughout,
  /// since what happens to one must not depend on its neighbours.
  void expect_right(Session& session, const std::function<double(std::int64_t)>& value,
                    NanPolicy nan = NanPolicy::propagate) const {
    using Result = std::conditional_t<sizeof(T) == 8, double, float>;
    std::array<std::vector<T>, 2> arrays{std::vector<T>(kLength, of(1)), std::vector<T>(kLength)};
    for (std::int64_t i = 0; i < kLength; ++i) arrays[1][static_cast<std::size_t>(i)] = of(value(i));
    const ReduceSpec spec{.op = ReduceOp::logsumexp, .dtype = kDTypeOf<T>, .nan = nan};
    const DeviceBuffer out(device_, kArrays * sizeof(Result));
    const auto check = [&](const char* what, std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) {
        const Result found = fetch(out.as<Result>() + (r - first));
        const auto expected = std::as_bytes(std::span(arrays[r % 2]));
        EXPECT_EQ(reduce_reference::verify(spec, kLength, kChain, {{{expected.begin(), expected.end()}}},
                                           std::as_bytes(std::span(&found, 1))),
                  "")
            << what << " " << r;
      }
    };
    std::vector<T> rows;
    std::vector<T> columns;
    for (std::size_t r = 0; r < kArrays; ++r) rows.insert(rows.end(), arrays[r % 2].begin(), arrays[r % 2].end());
    for (std::size_t i = 0; i < kLength; ++i)
      for (std::size_t c = 0; c < kPitch; ++c) columns.push_back(arrays[c % 2][i]);
    const auto of_rows = upload(rows, 1);
    const auto of_columns = upload(columns);
    tuned_reduce(session, spec, of_rows.data + kLength, kLength, out.data(), nullptr);
    check("array", 1, 2);
    tuned_reduce_rows(session, spec, of_rows.data, {kArrays, kLength}, out.data(), nullptr);
    check("row", 0, kArrays);
    tuned_reduce_columns(session, spec, of_columns.data, {.reduced = kLength, .inner = kArrays, .pitch = kPitch},
                         out.data(), nullptr);
    check("column", 0, kArrays);
  }

 private:
  static constexpr int kArrays = 8;
  static constexpr int kPitch = 16;  ///< of columns: rows of several would be one, and a thread have a tile at most
};

using FloatingTypes = testing::Types<half, bfloat16, float, double>;
TYPED_TEST_SUITE(LogsumexpOrders, FloatingTypes);

TYPED_TEST(LogsumexpOrders, EveryElementMayBeLargerThanAllBeforeOrSmaller) {
  Session session(this->device_, this->quick());
  this->expect_right(session, [](std::int64_t i) { return static_cast<double>(i) - 10000; });
  this->expect_right(session, [](std::int64_t i) { return 10000 - static_cast<double>(i); });
  // In steps that every tile takes, and about as high as what a tile may add unseen.
  for (double step : {6.0, 6.8, 6.93, 6.94, 7.0, 8.0})
    this->expect_right(session, [&](std::int64_t i) { return step * static_cast<double>(i / 4000); });
}

TYPED_TEST(LogsumexpOrders, WhatComesLateIsSeen) {
  Session session(this->device_, this->quick());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double highest = sizeof(TypeParam) == 8 ? std::numeric_limits<double>::max()
                         : kDTypeOf<TypeParam> == DType::f16 ? 65504
                                                             : std::ldexp(255.0, 120);
  // In a whole tile, or at the end, where elements are taken one by one.
  for (std::int64_t at : {this->kLength * 3 / 4, this->kLength - 1}) {
    for (double late : {kInfinity, kNan, highest, 65504.0, 30.0, 6.93, -highest, -kInfinity}) {
      this->expect_right(session, [&](std::int64_t i) { return i == at ? late : 0.25; });
      this->expect_right(session, [&](std::int64_t i) { return i == at ? late : -kInfinity; });
      this->expect_right(session, [&](std::int64_t i) { return i == at ? late : -highest; });
    }
    this->expect_right(session, [&](std::int64_t i) { return i == at ? highest : highest * 0.75; });
  }
}

TYPED_TEST(LogsumexpOrders, IgnoredNansMayBeAnywhere) {
  Session session(this->device_, this->quick());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (double other : {0.5, kInfinity, -kInfinity, kNan})
    for (std::int64_t every : {1, 2, 3, 4001})
      this->expect_right(
          session, [&](std::int64_t i) { return i % every == every / 2 ? other : kNan; }, NanPolicy::ignore);
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
    expect_refused(rows({}, {8, 7}, bytes + 2, out.data()), "not aligned to its 4-byte elements");
    expect_refused(rows({.op = ReduceOp::dot}, {8, 8}, in.data, out.data()), "tuned_dot()");
    expect_refused(rows({.op = ReduceOp::argmin}, {8, 0}, in.data, out.data()), "of no elements");
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
  ASSERT_TRUE(session.tune(rows_of(65), {.budget = std::chrono::seconds(20), .only = {Candidate{a_warp_a_row, {2}}}}).winner);
  EXPECT_EQ(session.prepare(rows_of(60)).source, ChoiceSource::memory);
  Session later(device_, options);
  const Choice choice = later.prepare(rows_of(60));
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(choice.winner->candidate.policy, a_warp_a_row);
}

/// Policies, launched directly.
class ReduceAxisPolicies : public DeviceTest {
 protected:
  /// What a device with many multiprocessors would try, with few threads: on the host, each is a fiber.
  std::vector<Policy> policies_of(const Problem& problem) const {
    DeviceFacts facts = device_->facts();
    facts.sm_count = 132;
    std::vector<Policy> some;
    for (const Policy& policy : problem.family->space().all())
      if (reason_to_skip(problem, policy, facts).empty() && (is_cuda() || policy.as<RowsPolicy>().block_threads <= 256))
        some.push_back(policy);
    return some;
  }

  void verify(const Problem& problem, const Policy& policy) {
    const KernelFamily& family = *problem.family;
    const Unit unit = unit_of(problem, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const CompiledCode code = load_policy(*device_, problem, policy, unit, binary);
    Workload workload(device_, problem, nullptr);
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    const int cluster = family.shape(problem, policy).cluster_blocks;
    for (std::int64_t max_blocks : {std::int64_t{cluster * 3}, std::int64_t{40}}) {
      const LoadedCandidate loaded{{policy, {max_blocks}}, code.module};
      for (const Problem& called : family.verifier().verified_problems(problem)) {
        if (!family.refuse(called).empty()) continue;
        for (std::string_view kind : family.verifier().input_kinds(called)) {
          const std::string fault =
              workload.verify(called, loaded.candidate, kind, [&](const Problem& now, std::span<void* const> buffers) {
                loaded.enqueue(*device_, now, buffers, workspace.data(), nullptr);
              });
          ASSERT_EQ(fault, "") << to_string(called) << " " << kind << " " << max_blocks << " × "
                               << family.space().to_string(policy);
        }
      }
    }
  }
};

/// A shape for each way that a parameter names, and a way for each shape that is awkward for it.
std::vector<Problem> problems_of(const ReduceSpec& spec) {
  const auto rows = [&](RowsShape shape, std::uint32_t alignment = kMaxAlignment) {
    return reduce_rows_problem(spec, shape, alignment);
  };
  const auto columns = [&](ColumnsShape shape, std::uint32_t alignment = kMaxAlignment) {
    return reduce_columns_problem(spec, shape, alignment);
  };
  return {rows({1000, 8}),          rows({129, 64}),
          rows({300, 7}, 1),        rows({33, 333}, 1),
          rows({31, 1025}),         rows({3, 20001}),
          rows({50, 13, 16}),       columns({1, 5000, 7}),
          columns({1, 700, 64}),    columns({1, 129, 1000}),
          columns({1, 31, 1025}),   columns({200, 8, 3}),
          columns({5, 60, 3, 4}),   columns({1, 60, 100, 104}),
          columns({3, 40, 129}, 1), columns({1, 4, 4097})};
}

/// Who shares the work: what a policy says besides its sizes.
std::string way_of(const Problem& problem, const Policy& policy) {
  if (problem.family == &reduce_rows_family()) {
    const auto rows = policy.as<RowsPolicy>();
    return fmt::format("{} {} {} {}", static_cast<int>(rows.scope), rows.threads_per_row,
                       static_cast<int>(rows.staging), rows.cluster_blocks);
  }
  const auto columns = policy.as<ColumnsPolicy>();
  return fmt::format("{} {}", static_cast<int>(columns.scope), static_cast<int>(columns.staging));
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

TEST_F(ReduceAxisPolicies, EveryWaySumsF32) {
  std::vector<Problem> problems = problems_of({});
  for (const Problem& each : problems_of({.numerics = Numerics::reproducible}))
    if (refusal_of(each).empty()) problems.push_back(each);
  for (const Problem& problem : problems) {
    // One policy of each way to share the work; on the host, which compiles them one by one, every third of these.
    std::vector<std::string> seen;
    for (const Policy& policy : policies_of(problem)) {
      const std::string way = way_of(problem, policy);
      if (std::find(seen.begin(), seen.end(), way) != seen.end()) continue;
      seen.push_back(way);
      if (seen.size() % 3 == 1 || is_cuda()) verify(problem, policy);
    }
    EXPECT_FALSE(seen.empty()) << to_string(problem);
  }
}

/// Columns of one chunk and of several, whose last is short, and of folded rows; shared by blocks and not.
TEST_F(ReduceAxisPolicies, ReproducibleColumnsHaveTheBitsOfTheDefinition) {
  const auto shapes = std::to_array<std::pair<ColumnsShape, std::uint32_t>>({{{1, 5000, 7}, kMaxAlignment},
                                                                             {{1, 3001, 64}, kMaxAlignment},
                                                                             {{1, 2100, 133}, 1},
                                                                             {{3, 700, 40, 48}, kMaxAlignment},
                                                                             {{2, 1500, 3}, 1},
                                                                             {{1, 31, 1025}, 1},
                                                                             {{1, 9000, 16}, kMaxAlignment}});
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes)
      for (const NanPolicy nan : {NanPolicy::propagate, NanPolicy::ignore}) {
        const ReduceSpec spec{.op = op.op, .dtype = dtype.dtype, .nan = nan, .numerics = Numerics::reproducible};
        if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype) || !spec.is_reproducible()) continue;
        if (nan == NanPolicy::ignore && !dtype.is_floating()) continue;
        if (++turn % (test::kSanitized ? 29 : 7) != 0 && !is_cuda()) continue;  // the host compiles them one by one
        const auto& [shape, alignment] = shapes[turn / 7 % shapes.size()];
        const Problem problem = reduce_columns_problem(spec, shape, alignment);
        ASSERT_EQ(refusal_of(problem), "");
        const std::vector<Policy> policies = policies_of(problem);
        ASSERT_FALSE(policies.empty()) << to_string(problem);
        verify(problem, policies[turn * 131 % policies.size()]);
      }
}

TEST_F(ReduceAxisPolicies, EveryOperationAndDTypeInSomeWay) {
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype)) continue;
      if (++turn % 11 != 0 && !is_cuda()) continue;  // the host compiles them one by one
      const std::vector<Problem> problems = problems_of({.op = op.op, .dtype = dtype.dtype});
      const Problem& problem = problems[turn * 7 % problems.size()];
      const std::vector<Policy> policies = policies_of(problem);
      ASSERT_FALSE(policies.empty()) << to_string(problem);
      verify(problem, policies[turn * 13 % policies.size()]);
    }
}

}  // namespace
}  // namespace hone
