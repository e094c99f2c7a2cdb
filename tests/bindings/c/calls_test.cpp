// The calls of the C interface on the host device.
#include <cmath>

#include "tests/bindings/c/c_fixture.h"

namespace hone::test {
namespace {

using testing::HasSubstr;

TEST_F(CApi, Reduces) {
  const std::vector<float> in = counting(1000);
  float sum = 0;
  hone_choice choice;
  ASSERT_EQ(hone_choice_init(&choice, sizeof choice), HONE_OK);
  const hone_reduce_spec spec = reduction("sum", "f32");
  ASSERT_EQ(hone_reduce(session_, &spec, in.data(), 1000, &sum, nullptr, &choice), HONE_OK) << hone_last_error();
  EXPECT_EQ(sum, 500500);
  EXPECT_EQ(choice.source, HONE_FROM_HEURISTIC);
  EXPECT_EQ(choice.tuned, 0);
  EXPECT_GT(choice.max_blocks, 0);

  const hone_reduce_spec argmax = reduction("argmax", "f32");
  std::int64_t index = -1;
  ASSERT_EQ(hone_dtype_size(hone_result_dtype(&argmax)), sizeof index);
  ASSERT_EQ(hone_reduce(session_, &argmax, in.data(), 1000, &index, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_EQ(index, 999);

  const hone_reduce_spec dot = reduction("dot", "f32");
  ASSERT_EQ(hone_dot(session_, &dot, in.data(), in.data(), 10, &sum, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_EQ(sum, 385);
}

TEST_F(CApi, ChoosesAccumulatorAndResult) {
  hone_reduce_spec spec = reduction("sum", "f32");
  spec.result = hone_dtype("f64");
  const std::vector<float> in = counting(100);
  double sum = 0;
  ASSERT_EQ(hone_reduce(session_, &spec, in.data(), 100, &sum, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_EQ(sum, 5050);
  EXPECT_EQ(hone_result_dtype(&spec), hone_dtype("f64"));
}

TEST_F(CApi, FusesReductions) {
  const std::vector<float> in = counting(100);
  const std::int32_t ops[] = {hone_op("sum"), hone_op("minmax")};
  float sum = 0, extremes[2] = {};
  ASSERT_EQ(hone_op_outputs(ops[1]), 2);
  void* const outs[] = {&sum, extremes};
  ASSERT_EQ(hone_reduce_fused(session_, ops, 2, hone_dtype("f32"), HONE_NAN_PROPAGATE, in.data(), 100, outs, nullptr,
                              nullptr),
            HONE_OK)
      << hone_last_error();
  EXPECT_EQ(sum, 5050);
  EXPECT_EQ(extremes[0], 1);
  EXPECT_EQ(extremes[1], 100);
}

TEST_F(CApi, NumericsAreAskedForByTheirNumber) {
  hone_reduce_spec spec = reduction("max", "f32");
  EXPECT_EQ(spec.numerics, HONE_NUMERICS_FAST);
  spec.numerics = HONE_NUMERICS_REPRODUCIBLE;
  const std::vector<float> in = counting(100);
  float largest = 0;
  ASSERT_EQ(hone_reduce(session_, &spec, in.data(), 100, &largest, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_EQ(largest, 100);
  spec.numerics = 2;
  EXPECT_EQ(hone_reduce(session_, &spec, in.data(), 100, &largest, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("HONE_NUMERICS_REPRODUCIBLE"));
}

TEST_F(CApi, IgnoresNansWhereAsked) {
  hone_reduce_spec spec = reduction("max", "f32");
  const float in[] = {1, NAN, 3};
  float largest = 0;
  ASSERT_EQ(hone_reduce(session_, &spec, in, 3, &largest, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_TRUE(std::isnan(largest));
  spec.nan_policy = HONE_NAN_IGNORE;
  ASSERT_EQ(hone_reduce(session_, &spec, in, 3, &largest, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_EQ(largest, 3);
}

TEST_F(CApi, ReducesRowsColumnsAndSegments) {
  const std::vector<float> in = counting(12);  // 3 x 4
  const hone_reduce_spec spec = reduction("sum", "f32");
  float rows[3] = {}, columns[3] = {}, segments[2] = {};
  ASSERT_EQ(hone_reduce_rows(session_, &spec, in.data(), 3, 3, 4, rows, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_THAT(rows, testing::ElementsAre(6, 18, 30));  // the fourth column is a gap
  ASSERT_EQ(hone_reduce_columns(session_, &spec, in.data(), 1, 3, 3, 4, columns, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_THAT(columns, testing::ElementsAre(15, 18, 21));
  const std::int64_t offsets[] = {0, 5, 12};
  ASSERT_EQ(
      hone_reduce_segments(session_, &spec, in.data(), 12, offsets, hone_dtype("i64"), 2, segments, nullptr, nullptr),
      HONE_OK)
      << hone_last_error();
  EXPECT_THAT(segments, testing::ElementsAre(15, 63));
}

TEST_F(CApi, ResultsAmongTheElementsAreRefused) {
  const hone_reduce_spec spec = reduction("sum", "f32");
  std::vector<float> in(64, 1);
  EXPECT_EQ(hone_reduce_rows(session_, &spec, in.data(), 8, 8, 0, in.data() + 60, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("overlap"));
}

TEST_F(CApi, MakesSoftmaxOfRowsAndColumns) {
  const float in[] = {0, 0, 0, std::log(3.0f)};
  float out[4] = {};
  hone_softmax_spec spec;
  ASSERT_EQ(hone_softmax_spec_init(&spec, sizeof spec), HONE_OK);
  spec.outer = 2, spec.reduced = 2;
  ASSERT_EQ(hone_softmax(session_, &spec, in, out, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_THAT(out,
              testing::ElementsAre(0.5f, 0.5f, testing::FloatNear(0.25f, 1e-6f), testing::FloatNear(0.75f, 1e-6f)));
  spec.outer = 1, spec.inner = 2, spec.logarithm = 1;
  ASSERT_EQ(hone_softmax(session_, &spec, in, out, nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_NEAR(out[0], std::log(0.5), 1e-6);
  EXPECT_NEAR(out[3], std::log(0.75), 1e-6);
}

TEST_F(CApi, NormalisesRows) {
  const float in[] = {3, 4, 1, 1}, residual[] = {0, 0, 2, 2}, weight[] = {1, 10};
  float out[4] = {}, sum[4] = {};
  hone_rms_norm_spec spec;
  ASSERT_EQ(hone_rms_norm_spec_init(&spec, sizeof spec), HONE_OK);
  spec.rows = 2, spec.columns = 2;
  ASSERT_EQ(hone_rms_norm(session_, &spec, in, nullptr, nullptr, out, nullptr, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_NEAR(out[0], 3 / std::sqrt(12.5), 1e-5);
  EXPECT_NEAR(out[2], 1, 1e-5);
  ASSERT_EQ(hone_rms_norm(session_, &spec, in, residual, weight, out, sum, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_THAT(sum, testing::ElementsAre(3, 4, 3, 3));
  EXPECT_NEAR(out[1], 40 / std::sqrt(12.5), 1e-5);
  EXPECT_NEAR(out[3], 10, 1e-5);
  EXPECT_EQ(hone_rms_norm(session_, &spec, in, residual, weight, out, nullptr, nullptr, nullptr),
            HONE_INVALID_ARGUMENT);

  hone_problem* problem = nullptr;
  ASSERT_EQ(hone_problem_rms_norm(&spec, 1, 1, 16, &problem), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_prepare(session_, problem, nullptr), HONE_OK) << hone_last_error();
  hone_problem_destroy(problem);
}

/// 1 − Π (1 − x): in the cache under `name`.
hone_reduction_source at_least_one(const char* name) {
  hone_reduction_source source;
  EXPECT_EQ(hone_reduction_source_init(&source, sizeof source), HONE_OK);
  source.name = name;
  source.map = "1.0f - x";
  source.combine = "a * b";
  source.identity = "1.0f";
  source.finish = "1.0f - acc";
  return source;
}

TEST_F(CApi, ReducesByExpressions) {
  hone_reduction_source source = at_least_one("at_least_one");
  hone_reduction* reduction = nullptr;
  ASSERT_EQ(hone_reduction_create(&source, &reduction), HONE_OK) << hone_last_error();
  const float in[] = {0.5f, 0.5f, 0.25f};
  float out = 0;
  ASSERT_EQ(hone_reduce_custom(session_, reduction, hone_dtype("f32"), in, 3, &out, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_FLOAT_EQ(out, 0.8125f);
  hone_problem* problem = nullptr;
  ASSERT_EQ(hone_problem_reduce_custom(reduction, hone_dtype("f32"), 1000, 16, &problem), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_prepare(session_, problem, nullptr), HONE_OK) << hone_last_error();
  hone_problem_destroy(problem);
  hone_reduction_destroy(reduction);
}

TEST_F(CApi, ExpressionsThatAreWrongAreRefused) {
  hone_reduction_source source = at_least_one("no name");
  hone_reduction* reduction = nullptr;
  EXPECT_EQ(hone_reduction_create(&source, &reduction), HONE_INVALID_ARGUMENT);
  source = at_least_one("half");
  source.accumulator = hone_dtype("f16");
  EXPECT_EQ(hone_reduction_create(&source, &reduction), HONE_INVALID_ARGUMENT);
  source = at_least_one("misspelt");
  source.map = "1.0f - y";
  ASSERT_EQ(hone_reduction_create(&source, &reduction), HONE_OK) << hone_last_error();
  const float in = 0.5f;
  float out = 0;
  EXPECT_EQ(hone_reduce_custom(session_, reduction, hone_dtype("f32"), &in, 1, &out, nullptr, nullptr),
            HONE_COMPILE_FAILED);
  EXPECT_THAT(hone_last_error(), HasSubstr("misspelt.map"));
  hone_reduction_destroy(reduction);
}

TEST_F(CApi, TransposesAndCopies) {
  const std::vector<float> in = counting(6);
  std::vector<float> out(6);
  hone_matrix_spec spec;
  ASSERT_EQ(hone_matrix_spec_init(&spec, sizeof spec), HONE_OK);
  spec.rows = 2, spec.columns = 3;
  ASSERT_EQ(hone_transpose(session_, &spec, in.data(), out.data(), nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_THAT(out, testing::ElementsAre(1, 4, 2, 5, 3, 6));
  ASSERT_EQ(hone_copy(session_, &spec, in.data(), out.data(), nullptr, nullptr), HONE_OK) << hone_last_error();
  EXPECT_EQ(out, in);
  spec.batch = 2;
  EXPECT_EQ(hone_copy(session_, &spec, in.data(), out.data(), nullptr, nullptr), HONE_INVALID_ARGUMENT);
}

TEST_F(CApi, NothingToDoIsNoFailureAndHasNoWinner) {
  hone_matrix_spec spec;
  ASSERT_EQ(hone_matrix_spec_init(&spec, sizeof spec), HONE_OK);
  hone_choice choice;
  ASSERT_EQ(hone_choice_init(&choice, sizeof choice), HONE_OK);
  float out = 7;
  const float in = 1;
  ASSERT_EQ(hone_copy(session_, &spec, &in, &out, nullptr, &choice), HONE_OK) << hone_last_error();
  EXPECT_EQ(choice.max_blocks, 0);
  EXPECT_EQ(out, 7);
}

TEST_F(CApi, WhatIsNotDefinedHasNoResult) {
  const hone_reduce_spec spec = reduction("logsumexp", "i32");
  EXPECT_EQ(hone_result_dtype(&spec), -1);
  EXPECT_THAT(hone_last_error(), testing::AllOf(HasSubstr("logsumexp"), HasSubstr("i32")));
}

}  // namespace
}  // namespace hone::test
