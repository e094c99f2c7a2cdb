// tuned_reduce_segments() on a real device: operations, dtypes and distributions of lengths against the reference,
// every policy on a GPU, and what is refused.
#include <gmock/gmock.h>

#include <numeric>

#include <fmt/format.h>

#include <hone/segmented_reduce.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/segmented_reduce/segment_offsets.h"
#include "runtime/families/segmented_reduce/segmented_policy.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

struct Shape {
  std::int64_t segments = 0;
  std::int64_t elements = 0;
};

class ReduceSegments : public DeviceTest {
 protected:
  /// Calls on `in` from `offset_elements` behind an aligned address, and verifies.
  void expect_right(Session& session, const ReduceSpec& spec, DType offset_dtype, const Shape& shape,
                    std::string_view kind, std::size_t offset_elements) const {
    const Problem problem = segmented_reduce_problem(spec, offset_dtype, shape.segments, shape.elements);
    const KernelFamily& family = *problem.family;
    const std::vector<std::byte> patterns[] = {family.verifier().input_pattern(problem, 0, kind),
                                               family.verifier().input_pattern(problem, 1, kind)};
    std::vector<std::byte> content(family.buffers(problem)[0].size_bytes());
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = patterns[0][i % patterns[0].size()];
    const auto in = upload(content, offset_elements * info(spec.dtype).size_bytes);
    const auto offsets = upload(patterns[1]);
    std::vector<std::byte> found(family.buffers(problem)[2].size_bytes());
    const DeviceBuffer out(device_, found.size() + 1);
    device_->fill_bytes(out.data(), 0xA5, found.size(), nullptr);
    const Choice choice = tuned_reduce_segments(session, spec, in.data, shape.elements, offsets.data, offset_dtype,
                                                shape.segments, out.data(), nullptr);
    device_->copy_to_host(found.data(), out.data(), found.size(), nullptr);
    device_->synchronize(nullptr);
    std::vector<std::byte> outputs[1];
    const std::size_t result_bytes = info(spec.result_dtype()).size_bytes;
    for (const ElementRange& part : family.verifier().verified_parts(problem, 2)) {
      const auto first = found.begin() + part.first * static_cast<std::ptrdiff_t>(result_bytes);
      outputs[0].insert(outputs[0].end(), first, first + part.count * static_cast<std::ptrdiff_t>(result_bytes));
    }
    EXPECT_EQ(family.verifier().verify(problem, choice.winner->candidate, patterns, outputs), "")
        << to_string(problem) << ' ' << kind;
  }

  /// Returns the results of the segments between `offsets`.
  template <class Tag, class T, class Result>
  std::vector<Result> reduce(Session& session, Tag tag, const std::vector<T>& values,
                             const std::vector<std::int64_t>& offsets, std::vector<Result> found,
                             NanPolicy nan = NanPolicy::propagate) const {
    const auto in = upload(values);
    const auto at = upload(offsets);
    const auto out = upload(found);
    tuned_reduce_segments(session, tag, in.data, static_cast<std::int64_t>(values.size()), at.data,
                          static_cast<std::int64_t>(offsets.size()) - 1, out.data, nullptr, nan);
    device_->copy_to_host(found.data(), out.data, found.size() * sizeof(Result), nullptr);
    device_->synchronize(nullptr);
    return found;
  }
};

class ReduceSegmentsOperation : public ReduceSegments, public testing::WithParamInterface<ReduceOp> {};

TEST_P(ReduceSegmentsOperation, IsRightForEveryDTypeOnEveryKindOfInput) {
  Session session(device_, quick());
  auto turn = static_cast<std::size_t>(GetParam());
  for (const DTypeInfo& dtype : kDTypes) {
    if (!reduce_supports(GetParam(), dtype.dtype)) continue;
    if (!is_due(++turn, 13)) continue;
    const NanPolicy nan = turn % 2 == 0 ? NanPolicy::ignore : NanPolicy::propagate;
    const ReduceSpec spec{.op = GetParam(), .dtype = dtype.dtype, .nan = nan};
    const DType offsets = turn % 3 == 0 ? DType::i64 : DType::i32;
    constexpr std::array kOthers{Shape{0, 0}, Shape{7, 0}, Shape{1, 1}, Shape{5000, 700}, Shape{3, 200003}};
    std::vector<Shape> shapes{{301, 3001}};
    if (is_cuda()) shapes.push_back(kOthers[turn % kOthers.size()]);
    for (const Shape& shape : shapes) {
      const Problem problem = segmented_reduce_problem(spec, offsets, shape.segments, shape.elements);
      std::size_t misalignment = 0;
      for (std::string_view kind : problem.family->verifier().input_kinds(problem))
        expect_right(session, spec, offsets, shape, kind, misalignment++ % 3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ReduceSegmentsOperation, testing::ValuesIn([] {
                           std::vector<ReduceOp> ops;
                           for (const ReduceOpInfo& op : kReduceOps)
                             if (op.inputs == 1) ops.push_back(op.op);
                           return ops;
                         }()),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_F(ReduceSegments, SegmentsWithoutElementsHaveTheDocumentedValues) {
  Session session(device_, quick());
  const std::vector<float> values{3, 1, 2};
  const std::vector<std::int64_t> offsets{0, 0, 2, 2, 3, 3};
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(reduce(session, sum, values, offsets, std::vector<float>(5)), testing::ElementsAre(0, 4, 0, 2, 0));
  EXPECT_THAT(reduce(session, min, values, offsets, std::vector<float>(5)),
              testing::ElementsAre(infinity, 1, infinity, 2, infinity));
  EXPECT_THAT(reduce(session, argmin, values, offsets, std::vector<std::int64_t>(5)),
              testing::ElementsAre(-1, 1, -1, 0, -1));
  const std::vector<float> means = reduce(session, mean, values, offsets, std::vector<float>(5));
  EXPECT_THAT(means, testing::ElementsAre(testing::IsNan(), 2, testing::IsNan(), 2, testing::IsNan()));
}

TEST_F(ReduceSegments, WhatNoSegmentHasIsLeftOut) {
  Session session(device_, quick());
  std::vector<std::int32_t> values(1000, 1000000);
  std::fill(values.begin() + 100, values.begin() + 900, 1);
  EXPECT_THAT(reduce(session, sum, values, {100, 350, 351, 900}, std::vector<std::int64_t>(3)),
              testing::ElementsAre(250, 1, 549));
}

TEST_F(ReduceSegments, ResultsAreBitwiseEqualFromRunToRun) {
  Session session(device_, quick());
  const std::vector<float> values = random_values<float>(100003);
  const std::vector<std::byte> bytes = segment_offsets::make("power_law", DType::i64, 997, 100003);
  std::vector<std::int64_t> offsets(998);
  std::memcpy(offsets.data(), bytes.data(), bytes.size());
  const std::vector<float> first = reduce(session, sum, values, offsets, std::vector<float>(997));
  for (int i = 0; i < (is_cuda() ? 20 : 2); ++i)
    EXPECT_EQ(reduce(session, sum, values, offsets, std::vector<float>(997)), first);
}

TEST_F(ReduceSegments, ATunedWinnerIsRightToo) {
  Session session(device_,
                  {.on_miss = MissPolicy::tune, .tune_budget = std::chrono::seconds(4), .cache_path = {}});
  const Problem problem = segmented_reduce_problem({}, DType::i32, 3001, 50000);
  EXPECT_EQ(session.prepare(problem).source, ChoiceSource::tuned);
  for (std::string_view kind : segment_offsets::kinds()) expect_right(session, {}, DType::i32, {3001, 50000}, kind, 1);
}

TEST_F(ReduceSegments, BadArgumentsAreNamed) {
  Session session(device_, quick());
  const auto in = upload(std::vector<float>(64, 1));
  const auto offsets = upload(std::vector<std::int32_t>{0, 3, 64});
  const DeviceBuffer out(device_, 64);
  const auto expect_refused = [&](const ReduceSpec& spec, const void* from, std::int64_t elements, const void* at,
                                  DType offset_dtype, std::int64_t segments, void* to, const char* why) {
    try {
      tuned_reduce_segments(session, spec, from, elements, at, offset_dtype, segments, to, nullptr);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  const auto* bytes = reinterpret_cast<const std::byte*>(in.data);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_refused({}, nullptr, 64, offsets.data, DType::i32, 2, out.data(), "'in' is null");
  expect_refused({}, in.data, 64, nullptr, DType::i32, 2, out.data(), "'offsets' is null");
  expect_refused({}, in.data, 64, offsets.data, DType::i32, 2, nullptr, "'out' is null");
  expect_refused({}, bytes + 2, 60, offsets.data, DType::i32, 2, out.data(), "'in' at");
  expect_refused({}, in.data, 64, bytes + 4, DType::i64, 2, out.data(), "'offsets' at");
  expect_refused({}, in.data, -1, offsets.data, DType::i32, 2, out.data(), "no extent can be negative");
  expect_refused({}, in.data, 64, offsets.data, DType::i32, -2, out.data(), "no extent can be negative");
  expect_refused({}, in.data, most, offsets.data, DType::i64, 2, out.data(), "no memory holds");
  expect_refused({}, in.data, 64, offsets.data, DType::i64, most, out.data(), "offsets and results");
  expect_refused({}, in.data, std::int64_t{1} << 31, offsets.data, DType::i32, 2, out.data(), "pass offsets of i64");
  expect_refused({}, in.data, 64, offsets.data, DType::u32, 2, out.data(), "i32 or i64, not u32");
  expect_refused({}, in.data, 64, offsets.data, static_cast<DType>(77), 2, out.data(), "i32 or i64, not unknown");
  expect_refused({.op = ReduceOp::dot}, in.data, 64, offsets.data, DType::i32, 2, out.data(), "two arrays");
  expect_refused({.op = static_cast<ReduceOp>(77)}, in.data, 64, offsets.data, DType::i32, 2, out.data(),
                 "no operation 77");
  expect_refused({.dtype = static_cast<DType>(14)}, in.data, 64, offsets.data, DType::i32, 2, out.data(),
                 "no dtype 14");
  expect_refused({.result = DType::i64}, in.data, 64, offsets.data, DType::i32, 2, out.data(),
                 "cannot be stored as i64");
}

TEST_F(ReduceSegments, ValidationNamesTheFirstBadOffset) {
  SessionOptions strict = quick();
  strict.validate_pointers = true;
  Session session(device_, strict);
  const auto in = upload(std::vector<float>(64, 1), 1);
  const DeviceBuffer out(device_, 64);
  const auto complaint = [&]<class Offset>(const std::vector<Offset>& values) -> std::string {
    const auto offsets = upload(values);
    try {
      tuned_reduce_segments(session, {}, in.data, 64, offsets.data, static_cast<std::int64_t>(values.size()) - 1,
                            out.data(), nullptr);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
  };
  EXPECT_EQ(complaint(std::vector<std::int32_t>{0, 3, 3, 64}), "");
  EXPECT_EQ(fetch(out.as<float>() + 2), 61);
  EXPECT_THAT(complaint(std::vector<std::int32_t>{0, 9, 7, 5}),
              Names("offsets[2]", "7", "less", "offsets[1]", "9"));
  EXPECT_THAT(complaint(std::vector<std::int64_t>{0, 9, 65, 5}),
              Names("offsets[2]", "65", "outside", "64 elements"));
  EXPECT_THAT(complaint(std::vector<std::int64_t>{-1, 9, 10, 5}), Names("offsets[0]", "-1", "outside"));

  if (!is_cuda()) {  // where memory beyond an allocation may be another one's
    for (const std::size_t bytes : {1000, 2400}) {
      const DeviceBuffer few(device_, bytes);
      device_->fill_bytes(few.data(), 0, bytes, nullptr);
      const DeviceBuffer sums(device_, 300 * sizeof(float));
      try {
        tuned_reduce_segments(session, {}, in.data, 64, few.as<std::int64_t>(), 300, sums.data(), nullptr);
        ADD_FAILURE() << bytes;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_THAT(error.what(), Names("'offsets'", "2408 bytes", std::to_string(bytes)));
      }
    }
  }

  const std::vector<std::int32_t> on_host{0, 1};
  try {
    tuned_reduce_segments(session, {}, in.data, 64, on_host.data(), 1, out.data(), nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Names("'offsets'"));
    EXPECT_THAT(error.what(), Names("host", "memory"));
  }
}

TEST_F(ReduceSegments, EveryPolicyIsRight) {
  if (!is_cuda()) GTEST_SKIP() << "the checks of the host device run all divisions";
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype)) continue;
      const bool is_plain = op.op == ReduceOp::sum && dtype.dtype == DType::f32;
      for (const Shape& shape : {Shape{1001, 70001}, Shape{300, 30}, Shape{40, 100003}}) {
        const Problem problem =
            segmented_reduce_problem({.op = op.op, .dtype = dtype.dtype}, DType::i32, shape.segments, shape.elements);
        std::vector<Policy> policies;
        for (const Policy& policy : problem.family->space().all())
          if (reason_to_skip(problem, policy, device_->facts()).empty() && (is_plain || ++turn % 83 == 0))
            policies.push_back(policy);
        std::vector<Unit> units;
        for (const Policy& policy : policies) units.push_back(unit_of(problem, policy));
        const std::vector<CompileOutcome> outcomes = BinaryMemo().compile(*device_, units);
        Workload workload(device_, problem, nullptr);
        const DeviceBuffer workspace = make_workspaces(device_, 1);
        for (std::size_t i = 0; i < policies.size(); ++i) {
          ASSERT_TRUE(outcomes[i].binary) << outcomes[i].error;
          const CompiledCode code = load_policy(*device_, problem, policies[i], units[i], outcomes[i].binary);
          for (std::int64_t max_blocks : {1, 7, 700})
            for (std::string_view kind : segment_offsets::kinds()) {
              const LoadedCandidate loaded{{policies[i], {max_blocks}}, code.module};
              const std::string fault = workload.verify(
                  problem, loaded.candidate, kind, [&](const Problem& called, std::span<void* const> buffers) {
                    loaded.enqueue(*device_, called, buffers, workspace.data(), nullptr);
                  });
              EXPECT_EQ(fault, "") << units[i].name << " in " << max_blocks << " blocks, " << kind;
            }
        }
      }
    }
}

TEST_F(ReduceSegments, MoreThanTwoToThe31Elements) {
  if (!is_cuda()) GTEST_SKIP() << "takes too long on the host";
  constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 5;
  DeviceBuffer in;
  try {
    in = DeviceBuffer(device_, kCount);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  Session session(device_, quick());
  device_->fill_bytes(in.data(), 1, kCount, nullptr);
  const auto offsets = upload(std::vector<std::int64_t>{0, 3, kCount - 2, kCount - 2, kCount});
  const DeviceBuffer out(device_, 4 * sizeof(std::int64_t));
  tuned_reduce_segments(session, sum, in.as<std::int8_t>(), kCount, offsets.data, 4, out.as<std::int64_t>(), nullptr);
  EXPECT_EQ(fetch(out.as<std::int64_t>()), 3);
  EXPECT_EQ(fetch(out.as<std::int64_t>() + 1), kCount - 5);
  EXPECT_EQ(fetch(out.as<std::int64_t>() + 2), 0);
  EXPECT_EQ(fetch(out.as<std::int64_t>() + 3), 2);
}

}  // namespace
}  // namespace hone
