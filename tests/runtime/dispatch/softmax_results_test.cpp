// tuned_softmax() and tuned_log_softmax() on a real device, and every kind of policy launched directly.
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>

#include <hone/softmax.h>

#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/runtime/support/verify_in_grids.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class SoftmaxResults : public DeviceTest {
 protected:
  /// Runs one call on a kind of input, `offset` elements behind an aligned address, and compares it with the reference;
  /// what lies between rows, and behind the last one, must be left alone.
  void expect_right(Session& session, const SoftmaxSpec& spec, bool is_log, const SoftmaxShape& shape,
                    std::string_view kind, std::size_t offset, bool in_place = false) {
    const Problem problem = is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape);
    const KernelFamily& family = *problem.family;
    const std::vector<BufferSpec> specs = family.buffers(problem);
    const std::vector<std::byte> pattern = family.verifier().input_pattern(problem, 0, kind);
    std::vector<std::byte> input(specs[0].size_bytes());
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = pattern[i % pattern.size()];
    const Array<std::byte> in = upload(input, offset * info(spec.dtype).size_bytes);
    const std::size_t out_bytes = specs[1].size_bytes();
    const std::vector<std::byte> poison(out_bytes + 16, std::byte{0xA5});
    const Array<std::byte> other = upload(poison, offset * info(spec.result_dtype()).size_bytes);
    std::byte* const out = in_place ? in.data : other.data;
    if (is_log) tuned_log_softmax(session, spec, in.data, shape, out, nullptr);
    else tuned_softmax(session, spec, in.data, shape, out, nullptr);
    std::vector<std::byte> result(in_place ? out_bytes : out_bytes + 16);
    device_->copy_to_host(result.data(), out, result.size(), nullptr);
    device_->synchronize(nullptr);

    const std::size_t bytes = info(spec.result_dtype()).size_bytes;
    const std::int64_t columns = shape.extents[shape.over_columns ? 2 : 1];
    const std::int64_t pitch = shape.pitches[1] != 0 ? shape.pitches[1] : columns;
    for (std::size_t i = 0; i < result.size() && !in_place; ++i) {
      const bool is_result = i < out_bytes && static_cast<std::int64_t>(i / bytes) % pitch < columns;
      ASSERT_TRUE(is_result || result[i] == std::byte{0xA5})
          << "byte " << i << " is no result of " << to_string(problem);
    }
    std::vector<std::byte> parts;
    for (const ElementRange& part : family.verifier().verified_parts(problem, 1)) {
      const auto first = result.begin() + part.first * static_cast<std::int64_t>(bytes);
      parts.insert(parts.end(), first, first + part.count * static_cast<std::int64_t>(bytes));
    }
    // The chain of a candidate is part of the bound; any of the family will do for these small arrays.
    const Candidate candidate{family.space().all().front(), {1}};
    const std::vector<std::byte> outputs[] = {parts};
    EXPECT_EQ(family.verifier().verify(problem, candidate, std::span(&pattern, 1), outputs), "")
        << to_string(problem) << " " << kind << " offset " << offset << (in_place ? " in place" : "");
  }

  std::vector<std::string_view> kinds() const {
    const Problem problem = softmax_problem({}, SoftmaxShape::array(1));
    const auto all = problem.family->verifier().input_kinds(problem);
    return {all.begin(), all.end()};
  }

  /// Every `step`th policy, of those that the device allows and that have `part` in their text, on all that winners are
  /// verified on, in several grids.
  void verify_policies(const Problem& problem, std::size_t step, std::string_view part = "") {
    std::vector<Policy> policies;
    std::size_t turn = 0;
    for (const Policy& policy : problem.family->space().all()) {
      if (problem.family->space().to_string(policy).find(part) == std::string::npos) continue;
      if (!reason_to_skip(problem, policy, device_->facts()).empty() || turn++ % step != 0) continue;
      if (test::in_share(policies_met_++)) policies.push_back(policy);
    }
    verify_policies(problem, policies, {1, 7});
  }

  void verify_policies(const Problem& problem, const std::vector<Policy>& policies,
                       const std::vector<std::int64_t>& grids) {
    expect_policies_right(device_, problem, policies, grids);
  }

  std::size_t policies_met_ = 0;  ///< those of all problems of a test share it
};

TEST_F(SoftmaxResults, AreRightOnEveryKindOfInputAtAwkwardSizes) {
  Session session(device_, quick());
  for (const bool is_log : {false, true})
    for (const std::string_view kind : kinds())
      for (const std::int64_t columns : {1, 2, 6, 7, 11, 33, 255})
        expect_right(session, {}, is_log, SoftmaxShape::rows(5, columns), kind, columns % 3);
}

TEST_F(SoftmaxResults, AreRightForEveryDTypeAndResult) {
  Session session(device_, quick());
  std::size_t turn = 0;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const DType result : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      const bool is_log = ++turn % 2 == 0;
      if (!test::in_share(turn + turn / 4)) continue;  // a quarter has each dtype, and each of results
      for (const std::string_view kind : kinds()) {
        expect_right(session, {.dtype = dtype, .result = result, .scale = 0.7}, is_log, SoftmaxShape::rows(3, 40), kind,
                     1);
        if (turn % 3 == 0)
          expect_right(session, {.dtype = dtype, .result = result}, is_log, SoftmaxShape::axis(2, 9, 8), kind, 0);
      }
    }
}

TEST_F(SoftmaxResults, ScalesAreArgumentsAndNoProblemsOfTheirOwn) {
  Session session(device_, quick());
  for (const double scale : {1.0, -2.0, 0.0, 1e-30, 3.5, 1e30})
    for (const std::string_view kind : kinds())
      expect_right(session, {.scale = scale}, scale == -2.0, SoftmaxShape::rows(4, 61), kind, 0);
  EXPECT_LE(session.counters().compiles, 2u);
}

TEST_F(SoftmaxResults, RowsMayHavePitchesAndReplaceTheirElements) {
  Session session(device_, quick());
  for (const std::int64_t columns : {7, 64, 300})
    for (const std::int64_t gap : {0, 1, 4}) {
      const Pitches pitches{columns + gap, columns + gap};
      expect_right(session, {}, false, SoftmaxShape::rows(6, columns, pitches), "uniform", 0, true);
      expect_right(session, {}, false, SoftmaxShape::rows(6, columns, {columns + gap, columns + 2}), "masked", 1);
      expect_right(session, {}, true, SoftmaxShape::columns(50, columns, pitches), "uniform", 1, true);
    }
  expect_right(session, {.dtype = DType::f16, .result = DType::bf16}, false, SoftmaxShape::rows(9, 77), "uniform", 0,
               true);
  constexpr SoftmaxSpec kReproducible{.dtype = DType::f16, .numerics = Numerics::reproducible};
  for (const std::int64_t columns : {5, 77, 1501})  // packs around rows hold what others replace
    expect_right(session, kReproducible, columns == 77, SoftmaxShape::rows(9, columns), "uniform", 1, true);
}

TEST_F(SoftmaxResults, LongRowsAndTallColumnsAreRight) {
  Session session(device_, quick());
  expect_right(session, {}, false, SoftmaxShape::array(50001), "wide", 1);
  expect_right(session, {.dtype = DType::f16}, true, SoftmaxShape::rows(2, 30000), "masked", 0);
  expect_right(session, {}, false, SoftmaxShape::columns(5000, 3), "uniform", 0);
}

TEST_F(SoftmaxResults, PoliciesOfEveryKindAreRight) {
  const std::size_t step = this->step(9);
  verify_policies(softmax_problem({}, SoftmaxShape::rows(37, 24)), step);
  verify_policies(log_softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(9, 1003)), step);
  verify_policies(softmax_problem({}, SoftmaxShape::rows(3, 9000)), step);
  verify_policies(softmax_problem({}, SoftmaxShape::rows(300, 5)), step);
  verify_policies(softmax_problem({}, SoftmaxShape::axis(2, 130, 12)), 2 * step);
  verify_policies(softmax_problem({.dtype = DType::f16}, SoftmaxShape::axis(2, 130, 51)), 2 * step);
  if (!is_cuda()) return;
  verify_policies(softmax_problem({.dtype = DType::bf16}, SoftmaxShape::columns(3001, 1001)), 2);
  verify_policies(softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(3, 1 << 17)), 1);
  verify_policies(softmax_problem({}, SoftmaxShape::rows(300, 1 << 15)), 2);
  verify_policies(softmax_problem({}, SoftmaxShape::rows(2, (1 << 20) + 1)), 2);
  verify_policies(log_softmax_problem({.dtype = DType::f16}, SoftmaxShape::columns(3000, 1 << 10)), 2);
}

/// Rows that lanes, a warp, a block or a cluster hold, in registers or shared memory, and that blocks read twice or
/// three times, each or together; aligned and not. Columns that a block holds, reads three times, and shares with
/// others.
TEST_F(SoftmaxResults, ReproducibleOnesHaveTheBitsOfTheDefinition) {
  const std::size_t step = this->step(test::kSanitized ? 41 : 29);
  constexpr Numerics kNumerics = Numerics::reproducible;
  verify_policies(softmax_problem({.numerics = kNumerics}, SoftmaxShape::rows(37, 24)), step);
  verify_policies(log_softmax_problem({.dtype = DType::f16, .numerics = kNumerics}, SoftmaxShape::rows(9, 1003)), step);
  verify_policies(softmax_problem({.numerics = kNumerics}, SoftmaxShape::rows(3, 9000)), step);
  verify_policies(log_softmax_problem({.dtype = DType::f64, .result = DType::f32, .numerics = kNumerics},
                                      SoftmaxShape::rows(5, 700, {704, 702})), step);
  verify_policies(softmax_problem({.dtype = DType::bf16, .result = DType::f16, .numerics = kNumerics},
                                  SoftmaxShape::rows(2, 80001)), step);
  verify_policies(log_softmax_problem({.dtype = DType::f16, .numerics = kNumerics}, SoftmaxShape::rows(2, 80000)),
                  step);
  verify_policies(softmax_problem({.numerics = kNumerics}, SoftmaxShape::axis(2, 1300, 12)), step);
  verify_policies(log_softmax_problem({.dtype = DType::f16, .numerics = kNumerics}, SoftmaxShape::axis(3, 40, 7)),
                  step);
  verify_policies(log_softmax_problem({.dtype = DType::f64, .result = DType::f32, .numerics = kNumerics},
                                      SoftmaxShape::columns(5000, 6, {8, 6})), step);
  const std::size_t shared_step = this->step(test::kSanitized ? 7 : 3);
  verify_policies(
      softmax_problem({.dtype = DType::f16, .scale = -0.5, .numerics = kNumerics}, SoftmaxShape::rows(5, 2000)),
      shared_step, "staging=shared");
  verify_policies(log_softmax_problem({.dtype = DType::bf16, .numerics = kNumerics}, SoftmaxShape::rows(3, 9001)),
                  shared_step, "staging=shared");
  // Longer than the tiles that hold rows from the middle of their classes.
  constexpr std::string_view kSmallTiles = "scope=block block_threads=128 staging=direct packs_per_thread=4";
  verify_policies(softmax_problem({.dtype = DType::f16, .numerics = kNumerics}, SoftmaxShape::rows(3, 5000)), 1,
                  kSmallTiles);
  verify_policies(log_softmax_problem({.numerics = kNumerics}, SoftmaxShape::rows(3, 2603)), 1, kSmallTiles);
  Session session(device_, quick());
  expect_right(session, {.numerics = kNumerics}, true, SoftmaxShape::axis(2, 700, 5), "masked", 1, true);
  for (const std::int64_t columns : {1, 300, 5000})
    expect_right(session, {.numerics = kNumerics}, columns == 300, SoftmaxShape::rows(6, columns), "masked", 1, true);
  for (const double scale : {0.0, -1e-30, 1e30})
    expect_right(session, {.scale = scale, .numerics = kNumerics}, false, SoftmaxShape::rows(4, 61), "huge", 0);
}

/// Weights are relative to another power of two where elements are large; where the scale is tiny or 0, no weights
/// relative to 1 can be guessed. Blocks share the work of summing spans again.
TEST_F(SoftmaxResults, ReproducibleRowsOfManyBlocksMayHaveAnyWeights) {
  constexpr std::string_view kSpans = "scope=grid combine=second_kernel block_threads=128 packs_per_thread=4";
  for (const double scale : {0.0, -1e-30, 40.0, -1e6}) {
    const SoftmaxSpec spec{.scale = scale, .numerics = Numerics::reproducible};
    verify_policies(softmax_problem(spec, SoftmaxShape::rows(2, 40000)), 1, kSpans);
    verify_policies(log_softmax_problem(spec, SoftmaxShape::rows(3, 20000)), 1, kSpans);
  }
}

/// Code for rows that threads hold to the last element has no checks: lanes with one or two rows at once, some of which
/// are not there, a block, and a cluster; other warps of a block have less. One of two chunks of a warp is in shared
/// memory. Elements are negated where the scale is.
TEST_F(SoftmaxResults, ReproducibleRowsOfWholePacksHaveTheBitsOfTheDefinition) {
  const auto rows = [](DType dtype, double scale, std::int64_t count, std::int64_t columns, bool is_log) {
    const SoftmaxSpec spec{.dtype = dtype, .scale = scale, .numerics = Numerics::reproducible};
    const SoftmaxShape shape = SoftmaxShape::rows(count, columns);
    return is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape);
  };
  const std::string lanes = "scope=warp threads_per_row=4 block_threads=128 staging=direct packs_per_thread=";
  verify_policies(rows(DType::f16, 1, 37, 64, false), 1, lanes + "4");
  verify_policies(rows(DType::f16, -0.5, 37, 64, true), 1, lanes + "4");
  verify_policies(rows(DType::f32, -1.25, 33, 64, false), 1, lanes + "4");
  // Rows of fewer packs than lanes may hold, and of more, which have twice the lanes, or twice the packs of a warp.
  for (const std::int64_t columns : {48, 56, 72, 88}) {
    verify_policies(rows(DType::f16, columns % 3 ? 1 : -1.5, 37, columns, columns % 16 == 8), 1, lanes + "2");
    verify_policies(rows(DType::f32, 0.75, 35, columns - 4, columns % 16 == 0), 1, lanes + "4");
  }
  const std::string warps = "scope=warp threads_per_row=32 block_threads=128 staging=direct packs_per_thread=";
  verify_policies(rows(DType::f32, -1, 9, 248, true), 1, warps + "2");
  verify_policies(rows(DType::f32, 1, 9, 340, false), 1, warps + "2");
  verify_policies(rows(DType::f16, 1, 9, 1400, true), 1, warps + "4");
  const std::string block = "scope=block block_threads=256 staging=direct packs_per_thread=4";
  verify_policies(rows(DType::bf16, 1, 2, 8192, false), 1, block);
  verify_policies(rows(DType::f64, -2, 2, 2048, true), 1, block);
  const std::string pairs = "scope=block block_threads=128 staging=direct packs_per_thread=8";
  verify_policies(rows(DType::f16, 0.5, 3, 8192, false), 1, pairs);
  verify_policies(rows(DType::bf16, -1, 3, 7011, true), 1, pairs);
  const SoftmaxSpec wider{.result = DType::f64, .numerics = Numerics::reproducible};
  verify_policies(softmax_problem(wider, SoftmaxShape::rows(3, 4000)), 1, pairs);
  const std::string cluster = "scope=cluster cluster_blocks=2 block_threads=128 staging=direct packs_per_thread=4";
  verify_policies(rows(DType::f16, 0.7, 2, 8192, true), 1, cluster);
  verify_policies(rows(DType::f16, 1.5, 2, 15000, false), 1,
                  "scope=cluster cluster_blocks=2 block_threads=128 staging=direct packs_per_thread=8");
  verify_policies(rows(DType::f16, -1, 2, 65536, false), 1, "scope=grid combine=second_kernel block_threads=1024");
}

/// Packs of rows that begin anywhere are turned: rows of lengths around those of a pack, of what lanes hold, and of
/// chunks, in registers, in shared memory, and read twice; where input and output have the same alignment in each row,
/// and where they have not.
TEST_F(SoftmaxResults, ReproducibleRowsOfPacksMayBeginAnywhere) {
  const auto verify = [&](DType dtype, std::int64_t columns, Pitches more, const std::string& policy_text) {
    if (columns < 1 || !test::in_share(policies_met_++)) return;
    const SoftmaxSpec spec{.dtype = dtype, .scale = columns % 2 ? 1.0 : -0.75, .numerics = Numerics::reproducible};
    const SoftmaxShape shape = SoftmaxShape::rows(19, columns, {columns + more[0], columns + more[1]});
    const auto bytes = static_cast<std::uint32_t>(info(dtype).size_bytes);
    const Problem problem = columns % 3 ? softmax_problem(spec, shape, bytes) : log_softmax_problem(spec, shape, bytes);
    const std::optional<Policy> policy = problem.family->space().parse(policy_text + " min_blocks=unset");
    ASSERT_TRUE(policy) << policy_text;
    ASSERT_EQ(problem.family->is_valid(problem, *policy, device_->facts()).text(), "") << to_string(problem);
    verify_policies(problem, std::vector{*policy}, {1, 4});
  };
  const std::string direct = " staging=direct packs_per_thread=", lanes = "scope=warp threads_per_row=";
  for (const std::int64_t step : {-1, 0, 3})
    for (const Pitches more : {Pitches{0, 0}, Pitches{1, 1}, Pitches{1, 4}}) {
      verify(DType::f16, 8 + step, more, lanes + "1 block_threads=128" + direct + "2");
      verify(DType::bf16, 61 + step, more, lanes + "4 block_threads=128" + direct + "4");
      verify(DType::f16, 253 + step, more, lanes + "16 block_threads=128" + direct + "4");
      verify(DType::f16, 1021 + step, more, lanes + "32 block_threads=128" + direct + "8");
      verify(DType::bf16, 1500 + step, more, "scope=block block_threads=128" + direct + "4");
      verify(DType::f16, 4093 + step, more, "scope=block block_threads=128" + direct + "4");
      verify(DType::f16, 6141 + step, more, "scope=block block_threads=128" + direct + "4");  // some read twice
      verify(DType::f16, 2045 + step, more, lanes + "32 block_threads=128 staging=shared");
      verify(DType::f32, 1533 + step, more, "scope=block block_threads=128 staging=shared smem_kib=48");
      verify(DType::f16, 8189 + step, more, "scope=block block_threads=128" + direct + "8");
      verify(DType::bf16, 16381 + step, more, "scope=block block_threads=128" + direct + "8");
      verify(DType::f32, 16381 + step, more, "scope=grid combine=second_kernel block_threads=128 packs_per_thread=4");
      if (!is_cuda()) continue;
      verify(DType::bf16, 16381 + step, more, "scope=cluster cluster_blocks=2 block_threads=256" + direct + "4");
    }
}

/// Threads with rows of their own in tiles: one and two at once, in whole words of shared memory and in words that begin
/// in the middle of a pair; more rows than a tile has, and fewer than a thread takes; input and output of other sizes.
TEST_F(SoftmaxResults, RowsOfAThreadInTilesAreRight) {
  const auto verify_rows = [&](SoftmaxSpec spec, bool is_log, const SoftmaxShape& shape, std::uint32_t alignment) {
    if (!test::in_share(policies_met_++)) return;
    const Problem problem =
        is_log ? log_softmax_problem(spec, shape, alignment) : softmax_problem(spec, shape, alignment);
    const std::optional<Policy> policy = problem.family->space().parse(
        "scope=warp threads_per_row=1 block_threads=128 staging=shared min_blocks=unset");
    ASSERT_TRUE(policy);
    ASSERT_EQ(problem.family->is_valid(problem, *policy, device_->facts()).text(), "");
    verify_policies(problem, std::vector{*policy}, {1, 3});
  };
  for (const std::int64_t columns : {1, 2, 3, 5, 7, 11, 12, 21}) {
    const bool is_log = columns % 3 == 0;
    verify_rows({.dtype = DType::f16}, is_log, SoftmaxShape::rows(901, columns), 2);
    verify_rows({.dtype = DType::bf16, .scale = -2}, !is_log, SoftmaxShape::rows(3, columns, {0, columns + 1}), 2);
    verify_rows({.dtype = DType::f32}, !is_log, SoftmaxShape::rows(600, columns), 4);
  }
  verify_rows({.dtype = DType::f16, .result = DType::f32}, false, SoftmaxShape::rows(700, 7), 4);
  verify_rows({.dtype = DType::f64, .result = DType::bf16}, true, SoftmaxShape::rows(700, 5), 8);
}

TEST_F(SoftmaxResults, PoliciesForManyLongRowsAreRight) {
  if (!is_cuda())
    GTEST_SKIP() << "the host device would compile hundreds of policies, and checks a few in host_checks_test";
  verify_policies(softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(37, (1 << 16) + 3)), 1);
}

/// Its blocks are far more than the rows that it keeps, so that most of them wait for others. It is slow, and pruned.
TEST_F(SoftmaxResults, APipelineOfManyShortRowsEnds) {
  const Problem problem = softmax_problem({}, SoftmaxShape::rows(is_cuda() ? 1 << 20 : 100, 16));
  const std::optional<Policy> policy = problem.family->space().parse(
      "scope=grid combine=pipeline block_threads=256 packs_per_thread=8 min_blocks=1");
  ASSERT_TRUE(policy);
  ASSERT_EQ(problem.family->is_valid(problem, *policy, device_->facts()).text(), "");
  verify_policies(problem, std::vector{*policy}, {8 * std::int64_t{device_->facts().sm_count}});
  if (!is_cuda()) verify_policies(problem, std::vector{*policy}, {1, 40});
}

TEST_F(SoftmaxResults, EmptyArraysAreLeftAlone) {
  Session session(device_, quick());
  for (const SoftmaxShape& shape : {SoftmaxShape::rows(0, 5), SoftmaxShape::rows(5, 0), SoftmaxShape::axis(3, 0, 4),
                                    SoftmaxShape::axis(0, 7, 4), SoftmaxShape::columns(7, 0)})
    EXPECT_EQ(tuned_softmax(session, {}, nullptr, shape, nullptr, nullptr).winner, nullptr);
  EXPECT_EQ(session.counters().compiles, 0);
}

TEST_F(SoftmaxResults, BadCallsAreRefusedByName) {
  Session session(device_, quick());
  const DeviceBuffer memory(device_, 4096);
  float* const in = memory.as<float>();
  const auto message = [&](const SoftmaxSpec& spec, const void* from, const SoftmaxShape& shape,
                           void* to) -> std::string {
    try {
      tuned_log_softmax(session, spec, from, shape, to, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  const SoftmaxShape shape = SoftmaxShape::rows(4, 8);
  EXPECT_THAT(message({}, nullptr, shape, in),
              Names("tuned_log_softmax", "f32", "4×8", "'in'", "null"));
  EXPECT_THAT(message({}, in, shape, nullptr), Names("'out'", "null"));
  EXPECT_THAT(message({}, reinterpret_cast<std::byte*>(in) + 2, shape, in + 100),
              Names("not aligned", "4 bytes"));
  EXPECT_THAT(message({}, in, shape, in + 1), Names("overlap"));
  EXPECT_THAT(message({}, in + 31, shape, in), Names("overlap"));
  EXPECT_EQ(message({}, in, shape, in + 32), "");
  EXPECT_EQ(message({}, in, SoftmaxShape::rows(4, 8, {16, 16}), in + 8), "") << "the other half of each row";
  EXPECT_THAT(message({.result = DType::f16}, in, shape, in), Names("another size"));
  EXPECT_THAT(message({}, in, SoftmaxShape::rows(4, 8, {8, 9}), in), Names("same pitch"));
  EXPECT_THAT(message({}, in, SoftmaxShape::rows(4, 8, {7, 0}), in), Names("pitch", "7"));
  EXPECT_THAT(message({}, in, SoftmaxShape::rows(-4, 8), in), Names("-4", "negative"));
  EXPECT_THAT(message({}, in, SoftmaxShape::rows(std::int64_t{1} << 40, std::int64_t{1} << 40), in),
              Names("1099511627776", "no memory holds them"));
  EXPECT_THAT(message({.dtype = DType::i32}, in, shape, in), Names("not i32"));
  EXPECT_THAT(message({.dtype = static_cast<DType>(77)}, in, shape, in), Names("no dtype", "77"));
  EXPECT_THAT(message({.scale = std::numeric_limits<double>::infinity()}, in, shape, in), Names("scale is inf"));
}

}  // namespace
}  // namespace hone
