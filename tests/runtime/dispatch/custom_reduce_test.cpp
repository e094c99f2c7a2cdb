// Reductions by expressions of the caller on a real device.
#include <gmock/gmock.h>

#include <hone/custom_reduce.h>
#include <hone/half.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/temp_folder.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using testing::Not;

const ReduceExpressions kSumOfCubes{
    .name = "sum_of_cubes", .map = "Acc(x) * x * x", .combine = "a + b", .identity = "0"};

class CustomReduce : public DeviceTest {
 protected:
  template <class Result, class T>
  Result reduce(Session& session, const CustomReduction& reduction, const std::vector<T>& values,
                std::size_t offset = 0) const {
    const auto in = upload(values, offset);
    const DeviceBuffer out(device_, 8);
    tuned_reduce(session, reduction, in.data, static_cast<std::int64_t>(values.size()), out.as<Result>(), nullptr);
    return fetch(out.as<Result>());
  }
};

TEST_F(CustomReduce, IntegersAreExactAtEverySizeAndAddress) {
  Session session(device_, quick());
  const CustomReduction cubes(kSumOfCubes, DType::i64);
  for (std::size_t n : {1u, 2u, 31u, 127u, 3000u, 70000u}) {
    std::vector<std::int8_t> values(n);
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<std::int8_t>(i * 37 % 251 - 125);
      expected += std::int64_t{values[i]} * values[i] * values[i];
    }
    for (std::size_t offset : {0u, 1u, 7u})
      EXPECT_EQ(reduce<std::int64_t>(session, cubes, values, offset), expected) << n << " at offset " << offset;
  }
}

TEST_F(CustomReduce, AnEmptyArrayGivesTheFinishedIdentity) {
  Session session(device_, quick());
  ReduceExpressions expressions = kSumOfCubes;
  expressions.finish = "acc + 7";
  EXPECT_EQ(reduce<std::int32_t>(session, CustomReduction(expressions, DType::i32), std::vector<std::int32_t>{}), 7);
}

TEST_F(CustomReduce, ExpressionsSeeTheIndexTheCountAndDeclarations) {
  Session session(device_, quick());
  // The centre of mass of values along their indices, and a helper of the caller's own.
  const ReduceExpressions moment{.name = "moment",
                                 .map = "weighted(x, i)",
                                 .combine = "a + b",
                                 .identity = "0",
                                 .finish = "acc / n",
                                 .declarations = "template <class I>\n__device__ double weighted(float x, I i) {\n"
                                                 "  return double(x) * double(i);\n}\n"};
  std::vector<float> values(1000, 2);
  EXPECT_EQ(reduce<double>(session, CustomReduction(moment, DType::f64), values), 999.0);
}

TEST_F(CustomReduce, SixteenBitFloatsComeAsFloatsAndBoolAsBool) {
  Session session(device_, quick());
  const ReduceExpressions largest{
      .name = "largest", .map = "fabsf(x)", .combine = "fmaxf(a, b)", .identity = "0", .finish = "acc * 2"};
  std::vector<half> values(500, half(0.5f));
  values[321] = half(-3.0f);
  EXPECT_EQ(static_cast<float>(reduce<half>(session, CustomReduction(largest, DType::f32, DType::f16), values)), 6.0f);

  const ReduceExpressions parity{.name = "parity", .map = "x ? 1u : 0u", .combine = "a ^ b", .identity = "0"};
  std::vector<std::byte> truths(301, std::byte{2});  // any byte but 0 is true
  const auto in = upload(truths);
  const DeviceBuffer out(device_, 4);
  tuned_reduce(session, CustomReduction(parity, DType::u32), DType::boolean, in.data, 301, out.data(), nullptr);
  EXPECT_EQ(fetch(out.as<std::uint32_t>()), 1u);
}

TEST_F(CustomReduce, IsTunedVerifiedAndCached) {
  const TempFolder folder;
  const SessionOptions options{.on_miss = MissPolicy::heuristic, .cache_path = folder / "cache.sqlite"};
  const CustomReduction cubes(kSumOfCubes, DType::f64);
  {
    Session session(device_, options);
    const Tuning tuning = session.tune(cubes.problem(DType::f32, 4000), {.budget = std::chrono::seconds(4)});
    ASSERT_TRUE(tuning.winner);
    for (const Trial& trial : tuning.trials) EXPECT_NE(trial.verdict, Verdict::wrong) << trial.reason;
  }
  Session session(device_, options);
  EXPECT_EQ(session.prepare(cubes.problem(DType::f32, 4000)).source, ChoiceSource::cache);
  // The digest of the expressions is part of the key.
  ReduceExpressions changed = kSumOfCubes;
  changed.map = "Acc(x) * x";
  EXPECT_EQ(session.prepare(CustomReduction(changed, DType::f64).problem(DType::f32, 4000)).source,
            ChoiceSource::heuristic);
}

TEST_F(CustomReduce, WhatDependsOnTheOrderIsRefusedAtEverySize) {
  struct Wrong {
    const char *combine, *identity;
    DType accumulator;
  };
  std::size_t turn = 0;
  for (const Wrong& wrong :
       {Wrong{"a - b", "0", DType::i64}, {"a + 2 * b", "0", DType::i64}, {"a - b", "0", DType::f32},
        {"a + 2 * b", "0", DType::f64}, {"a > b ? a - b : b - a", "0", DType::f32}, {"(a + b) / 2", "0", DType::f64},
        {"a", "0", DType::i32}, {"a + b", "1", DType::i32}}) {
    const CustomReduction reduction({.name = "ordered", .combine = wrong.combine, .identity = wrong.identity},
                                    wrong.accumulator);
    for (const std::int64_t n : {1, 2, 300, 3001, 70000}) {
      if (!test::in_share(turn++)) continue;
      const MissPolicy on_miss = n == 2 || n == 3001 ? MissPolicy::heuristic : MissPolicy::tune;
      Session session(device_,
                      {.on_miss = on_miss, .tune_budget = std::chrono::milliseconds(300), .cache_path = {}});
      try {
        session.prepare(reduction.problem(DType::i32, n));
        ADD_FAILURE() << wrong.combine << " with identity " << wrong.identity << " was accepted for " << n;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_THAT(error.what(), Names("'ordered'", "order", "associative"));
      }
    }
  }
}

TEST_F(CustomReduce, AnIdentityThatPositiveElementsDoNotShowIsRefused) {
  const CustomReduction largest({.name = "largest", .combine = "a > b ? a : b", .identity = "0"}, DType::f32);
  for (const MissPolicy on_miss : {MissPolicy::heuristic, MissPolicy::tune}) {
    Session session(device_, {.on_miss = on_miss, .tune_budget = std::chrono::milliseconds(300), .cache_path = {}});
    try {
      session.prepare(largest.problem(DType::f32, 1000));
      ADD_FAILURE() << "it was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names("'largest'", "identity", "-1"));
    }
  }
}

TEST_F(CustomReduce, WhatRoundsIsNotTakenForWhatDependsOnTheOrder) {
  const ReduceExpressions logsumexp{.name = "log_sum_exp",
                                    .map = "x",
                                    .combine = "a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b))",
                                    .identity = "-1e30"};
  const ReduceExpressions centred{.name = "centred", .map = "Acc(x) - Acc(1.5)", .combine = "a + b", .identity = "0"};
  const ReduceExpressions product{.name = "product", .combine = "a * b", .identity = "1"};
  for (const ReduceExpressions& expressions : {logsumexp, centred, product}) {
    for (const DType accumulator : {DType::f32, DType::f64}) {
      Session session(device_, {.on_miss = MissPolicy::tune, .cache_path = {}});
      const Problem problem = CustomReduction(expressions, accumulator).problem(DType::f32, 20);
      EXPECT_TRUE(session.tune(problem, {.budget = std::chrono::milliseconds(300)}).winner) << expressions.name;
    }
  }
}

TEST_F(CustomReduce, ABadExpressionGivesTheCompilersMessageWithTheCallersLine) {
  for (MissPolicy policy : {MissPolicy::heuristic, MissPolicy::tune}) {
    Session session(device_, {.on_miss = policy, .cache_path = {}});
    const CustomReduction bad({.name = "bad", .map = "x +\n  unknown", .combine = "a + b", .identity = "0"},
                              DType::i32);
    try {
      reduce<std::int32_t>(session, bad, std::vector<std::int32_t>{1});
      ADD_FAILURE() << "unknown was known";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::compile_failed);
      const std::string line = is_cuda() ? "bad.map(2)" : "bad.map:2";
      EXPECT_THAT(error.what(), Names(line, "unknown"));
    }
  }
}

TEST_F(CustomReduce, AnExpressionThatLacksItsEndIsNamed) {
  const std::vector<std::pair<ReduceExpressions, std::string>> lacking{
      {{.name = "cut", .map = "x +", .combine = "a + b", .identity = "0"}, "cut.map"},
      {{.name = "cut", .combine = "a +", .identity = "0"}, "cut.combine"},
      {{.name = "cut", .combine = "a + b // all", .identity = "-"}, "cut.identity"},
      {{.name = "cut", .combine = "a + b", .identity = "0", .finish = "acc *"}, "cut.finish"}};
  Session session(device_, {.on_miss = MissPolicy::heuristic, .cache_path = {}});
  for (const auto& [expressions, text] : lacking) {
    try {
      reduce<std::int32_t>(session, CustomReduction(expressions, DType::i32), std::vector<std::int32_t>{1});
      ADD_FAILURE() << text << " compiled";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::compile_failed);
      EXPECT_THAT(error.what(), Names(text)) << error.what();
    }
  }
}

TEST_F(CustomReduce, WhatDoesNotCompileIsNotCompiledAgain) {
  for (MissPolicy policy : {MissPolicy::heuristic, MissPolicy::tune}) {
    Session session(device_, {.on_miss = policy, .cache_path = {}});
    const CustomReduction bad({.name = "bad_twice", .map = "unknown", .combine = "a + b", .identity = "0"}, DType::i32);
    EXPECT_THROW(reduce<std::int32_t>(session, bad, std::vector<std::int32_t>{1}), Error);
    const std::uint64_t compiles = session.counters().compiles;
    EXPECT_LE(compiles, 2u) << "every policy has the same mistake";
    for (int i = 0; i < 3; ++i)
      EXPECT_THROW(reduce<std::int32_t>(session, bad, std::vector<std::int32_t>{1}), Error);
    EXPECT_EQ(session.counters().compiles, compiles);
  }
}

TEST_F(CustomReduce, WhatIsNotOneExpressionIsRefused) {
  using namespace std::string_literals;
  const auto refusal = [](const std::string& combine) -> std::string {
    try {
      CustomReduction({.name = "odd", .combine = combine, .identity = "0"}, DType::i32);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  for (const std::string& text :
       {"a + b; a - b"s, "a + b;"s, "a + b\0 - a"s, "a; } static __device__ int f() { return 1"s, "(a + b"s, "a + b)"s,
        "a + b /* and"s, "a + b)); } int g() { return ((1"s, "a\n#define b 1\n+ b"s, "a + \"b"s})
    EXPECT_THAT(refusal(text), Names("combine", "expression")) << text;
  for (const std::string& text : {"a + b // and so on ;"s, "a /* ; */ + b"s, "[=] { int c = a; return c + b; }()"s,
                                  "a + (b != ';' ? b : 1'000)"s, "(a) + (b)"s})
    EXPECT_EQ(refusal(text), "accepted") << text;
}

TEST_F(CustomReduce, EqualExpressionsShareTheirWinners) {
  EXPECT_EQ(CustomReduction(kSumOfCubes, DType::i64).problem(DType::i8, 5).family,
            CustomReduction(kSumOfCubes, DType::f32).problem(DType::f32, 9).family);
}

TEST_F(CustomReduce, WhatMakesNoSenseIsNamed) {
  const auto refused = [](const ReduceExpressions& expressions, DType accumulator, const char* why) {
    try {
      CustomReduction(expressions, accumulator);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  ReduceExpressions expressions = kSumOfCubes;
  expressions.name = "sum of cubes";
  refused(expressions, DType::f32, "letters, digits and underscores");
  expressions = kSumOfCubes;
  expressions.identity = " ";
  refused(expressions, DType::f32, "has no identity");
  expressions = kSumOfCubes;
  expressions.relative_tolerance = -1;
  refused(expressions, DType::f32, "relative_tolerance of -1");
  refused(kSumOfCubes, DType::f16, "cannot accumulate in f16");

  Session session(device_, quick());
  const auto in = upload(std::vector<float>{1, 2});
  const DeviceBuffer out(device_, 8);
  try {
    tuned_reduce(session, CustomReduction(kSumOfCubes, DType::f64), in.data, 2, out.as<float>(), nullptr);
    ADD_FAILURE() << "f64 is no f32";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Names("'out'", "points", "f32", "f64"));
  }
}

}  // namespace
}  // namespace hone
