// The C interface on the host device: every call, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <hone/c.h>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
using testing::HasSubstr;

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(hone_device_open("host", &device_), HONE_OK) << hone_last_error();
    hone_session_options options;
    ASSERT_EQ(hone_session_options_init(&options, sizeof options), HONE_OK) << hone_last_error();
    options.on_miss = HONE_ON_MISS_HEURISTIC;
    options.cache_path = "";
    options.validate_pointers = 0;
    ASSERT_EQ(hone_session_create(device_, &options, &session_), HONE_OK) << hone_last_error();
  }
  void TearDown() override {
    hone_session_destroy(session_);
    hone_device_close(device_);
  }

  static hone_reduce_spec reduction(const char* op, const char* dtype) {
    hone_reduce_spec spec;
    EXPECT_EQ(hone_reduce_spec_init(&spec, sizeof spec), HONE_OK);
    spec.op = hone_op(op);
    spec.dtype = hone_dtype(dtype);
    return spec;
  }

  /// A text that the library gave.
  static std::string taken(char* text) {
    std::string copy = text;
    hone_free(text);
    return copy;
  }

  hone_device* device_ = nullptr;
  hone_session* session_ = nullptr;
};

std::vector<float> counting(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

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

TEST_F(CApi, APinnedSessionDoesNotTune) {
  ASSERT_EQ(hone_session_pin(session_), HONE_OK) << hone_last_error();
  hone_problem* problem = nullptr;
  const hone_reduce_spec spec = reduction("max", "f32");
  ASSERT_EQ(hone_problem_reduce(&spec, 100, 16, &problem), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_tune(session_, problem, 10, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("pinned"));
  EXPECT_EQ(hone_prepare(session_, problem, nullptr), HONE_OK) << hone_last_error();
  hone_problem_destroy(problem);
  EXPECT_EQ(hone_session_pin(nullptr), HONE_INVALID_ARGUMENT);
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

TEST_F(CApi, PreparesAndTunes) {
  const hone_reduce_spec spec = reduction("sum", "i32");
  hone_problem* problem = nullptr;
  ASSERT_EQ(hone_problem_reduce(&spec, 5000, 16, &problem), HONE_OK) << hone_last_error();
  char* text = nullptr;
  ASSERT_EQ(hone_problem_text(problem, &text), HONE_OK);
  EXPECT_THAT(taken(text), testing::AllOf(HasSubstr("sum"), HasSubstr("i32"), HasSubstr("5000")));

  ASSERT_EQ(hone_tune(session_, problem, 300, &text), HONE_OK) << hone_last_error();
  const json tuning = json::parse(taken(text));
  ASSERT_TRUE(tuning["winner"].is_number());
  const json& winner = tuning["trials"][tuning["winner"].get<std::size_t>()];
  EXPECT_EQ(winner["verdict"], "ok");
  EXPECT_GT(winner["median_us"], 0.0);

  hone_choice choice;
  ASSERT_EQ(hone_choice_init(&choice, sizeof choice), HONE_OK);
  ASSERT_EQ(hone_prepare(session_, problem, &choice), HONE_OK) << hone_last_error();
  EXPECT_EQ(choice.source, HONE_FROM_MEMORY);
  ASSERT_EQ(hone_session_counters(session_, &text), HONE_OK);
  EXPECT_EQ(json::parse(taken(text))["tunings"], 1);
  hone_problem_destroy(problem);
}

TEST_F(CApi, TuningsReportTheirProgressAndStop) {
  const hone_reduce_spec spec = reduction("max", "i32");
  hone_problem* problem = nullptr;
  ASSERT_EQ(hone_problem_reduce(&spec, 5000, 16, &problem), HONE_OK) << hone_last_error();
  int calls = 0;
  const hone_progress stop_at_once = [](void* context, std::int32_t phase, std::int32_t done, std::int32_t total,
                                        double) -> std::int32_t {
    EXPECT_THAT(phase, testing::AllOf(testing::Ge(0), testing::Le(2)));
    EXPECT_LE(done, total);
    return ++*static_cast<int*>(context);
  };
  char* text = nullptr;
  ASSERT_EQ(hone_tune_with_progress(session_, problem, 300, stop_at_once, &calls, &text), HONE_OK) << hone_last_error();
  EXPECT_GE(calls, 1);
  const json tuning = json::parse(taken(text));
  EXPECT_TRUE(tuning["winner"].is_null());
  EXPECT_EQ(tuning["search_end"], "it was stopped");
  hone_problem_destroy(problem);
}

TEST_F(CApi, FusedReductionsAreTuned) {
  const std::int32_t ops[] = {hone_op("sum"), hone_op("max")};
  hone_problem* problem = nullptr;
  ASSERT_EQ(hone_problem_reduce_fused(ops, 2, hone_dtype("f32"), HONE_NAN_PROPAGATE, 5000, 16, &problem), HONE_OK)
      << hone_last_error();
  ASSERT_EQ(hone_tune(session_, problem, 300, nullptr), HONE_OK) << hone_last_error();
  const std::vector<float> in = counting(5000);
  float sum = 0, largest = 0;
  void* const outs[] = {&sum, &largest};
  hone_choice choice;
  ASSERT_EQ(hone_choice_init(&choice, sizeof choice), HONE_OK);
  ASSERT_EQ(hone_reduce_fused(session_, ops, 2, hone_dtype("f32"), HONE_NAN_PROPAGATE, in.data(), 5000, outs, nullptr,
                              &choice),
            HONE_OK)
      << hone_last_error();
  EXPECT_EQ(choice.source, HONE_FROM_MEMORY);
  EXPECT_EQ(largest, 5000);
  hone_problem_destroy(problem);
}

TEST_F(CApi, StoredTuningsAreReadBack) {
  const std::string path = testing::TempDir() + "c_api_stored_tunings.sqlite";
  std::remove(path.c_str());
  hone_session_options options;
  ASSERT_EQ(hone_session_options_init(&options, sizeof options), HONE_OK);
  options.cache_path = path.c_str();
  hone_session* session = nullptr;
  ASSERT_EQ(hone_session_create(device_, &options, &session), HONE_OK) << hone_last_error();
  const hone_reduce_spec spec = reduction("sum", "i16");
  hone_problem* problem = nullptr;
  ASSERT_EQ(hone_problem_reduce(&spec, 5000, 16, &problem), HONE_OK) << hone_last_error();
  char* text = nullptr;
  ASSERT_EQ(hone_stored_tuning(session, problem, &text), HONE_OK) << hone_last_error();
  EXPECT_EQ(taken(text), "null");
  ASSERT_EQ(hone_tune(session, problem, 300, &text), HONE_OK) << hone_last_error();
  const json tuned = json::parse(taken(text));
  ASSERT_EQ(hone_stored_tuning(session, problem, &text), HONE_OK) << hone_last_error();
  const json stored = json::parse(taken(text));
  EXPECT_EQ(stored["winner"], tuned["winner"]);
  EXPECT_EQ(stored["trials"], tuned["trials"]);
  hone_problem_destroy(problem);
  hone_session_destroy(session);
  std::remove(path.c_str());
}

TEST_F(CApi, AllocatesAndCopiesDeviceMemory) {
  void* memory = nullptr;
  ASSERT_EQ(hone_allocate(device_, 16, &memory), HONE_OK) << hone_last_error();
  const int from[4] = {1, 2, 3, 4};
  int to[4] = {};
  ASSERT_EQ(hone_copy_to_device(device_, memory, from, sizeof from, nullptr), HONE_OK);
  ASSERT_EQ(hone_copy_to_host(device_, to, memory, sizeof to, nullptr), HONE_OK);
  ASSERT_EQ(hone_synchronize(device_, nullptr), HONE_OK);
  EXPECT_THAT(to, testing::ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(hone_copy_to_device(device_, nullptr, from, sizeof from, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_copy_to_host(device_, nullptr, memory, sizeof to, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_copy_to_host(device_, to, nullptr, 0, nullptr), HONE_OK);
  hone_deallocate(device_, memory);
}

TEST_F(CApi, OptionsBelowZeroAreRefused) {
  for (std::int32_t which = 0; which < 3; ++which) {
    hone_session_options options;
    ASSERT_EQ(hone_session_options_init(&options, sizeof options), HONE_OK);
    if (which == 0) options.capture_workspaces = -3;
    if (which == 1) options.tune_budget_ms = -1;
    if (which == 2) options.cache_max_bytes = -1;
    hone_session* session = nullptr;
    EXPECT_EQ(hone_session_create(device_, &options, &session), HONE_INVALID_ARGUMENT) << which;
    EXPECT_THAT(hone_last_error(), HasSubstr("-"));
    EXPECT_EQ(session, nullptr);
  }
}

TEST_F(CApi, WhatIsNotDefinedHasNoResult) {
  const hone_reduce_spec spec = reduction("logsumexp", "i32");
  EXPECT_EQ(hone_result_dtype(&spec), -1);
  EXPECT_THAT(hone_last_error(), testing::AllOf(HasSubstr("logsumexp"), HasSubstr("i32")));
}

TEST(CNames, AreThoseOfTheTables) {
  for (std::int32_t op = 0; hone_op_name(op) != nullptr; ++op) EXPECT_EQ(hone_op(hone_op_name(op)), op);
  for (std::int32_t dtype = 0; hone_dtype_name(dtype) != nullptr; ++dtype) {
    EXPECT_EQ(hone_dtype(hone_dtype_name(dtype)), dtype);
    EXPECT_GT(hone_dtype_size(dtype), 0u);
  }
  EXPECT_EQ(hone_dtype_name(-1), nullptr);
  EXPECT_EQ(hone_op_outputs(1000), 0);
}

// Programs store these numbers.
TEST(CNames, NumbersStayTheSame) {
  const char* const ops[] = {"sum",     "product", "min",           "max",           "minmax",
                             "argmin",  "argmax",  "mean",          "mean_variance", "sum_of_squares",
                             "l1_norm", "l2_norm", "max_norm",      "logsumexp",     "dot",
                             "any",     "all",     "count_nonzero", "range"};
  const char* const dtypes[] = {"f16", "bf16", "f32", "f64", "i8",  "i16", "i32",
                                "i64", "u8",   "u16", "u32", "u64", "bool"};
  for (std::size_t i = 0; i < std::size(ops); ++i) EXPECT_EQ(hone_op(ops[i]), static_cast<std::int32_t>(i)) << ops[i];
  for (std::size_t i = 0; i < std::size(dtypes); ++i)
    EXPECT_EQ(hone_dtype(dtypes[i]), static_cast<std::int32_t>(i)) << dtypes[i];
}

TEST_F(CApi, UnknownNamesListTheKnownOnes) {
  EXPECT_EQ(hone_op("summ"), -1);
  EXPECT_THAT(hone_last_error(), testing::AllOf(HasSubstr("summ"), HasSubstr("argmax")));
  EXPECT_EQ(hone_dtype(nullptr), -1);
  hone_device* device = nullptr;
  EXPECT_EQ(hone_device_open("gpu7", &device), HONE_NOT_FOUND);
  EXPECT_EQ(device, nullptr);
}

TEST_F(CApi, NullPointersAndWrongNumbersAreRefused) {
  const hone_reduce_spec spec = reduction("sum", "f32");
  float out = 0;
  const float in = 1;
  EXPECT_EQ(hone_reduce(nullptr, &spec, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("session"));
  EXPECT_EQ(hone_reduce(session_, nullptr, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_reduce(session_, &spec, nullptr, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_reduce(session_, &spec, &in, -1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  for (const std::int32_t bad : {-1, 1000}) {
    hone_reduce_spec wrong = spec;
    wrong.op = bad;
    EXPECT_EQ(hone_reduce(session_, &wrong, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_last_error(), HasSubstr(std::to_string(bad)));
    wrong = spec;
    wrong.dtype = bad;
    EXPECT_EQ(hone_reduce(session_, &wrong, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  }
  hone_reduce_spec wrong = spec;
  wrong.nan_policy = 2;
  EXPECT_EQ(hone_reduce(session_, &wrong, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  hone_problem* problem = nullptr;
  EXPECT_EQ(hone_problem_reduce(&spec, 1, 3, &problem), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(problem, nullptr);
  EXPECT_EQ(hone_tune(session_, nullptr, 100, nullptr), HONE_INVALID_ARGUMENT);
  hone_device_close(nullptr);
  hone_session_destroy(nullptr);
  hone_problem_destroy(nullptr);
  hone_free(nullptr);
}

TEST_F(CApi, StructsSayTheirSize) {
  hone_reduce_spec spec{};  // never initialised
  float out = 0;
  const float in = 2;
  EXPECT_EQ(hone_reduce(session_, &spec, &in, 1, &out, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("hone_reduce_spec_init"));
  EXPECT_EQ(hone_reduce_spec_init(&spec, sizeof spec + 8), HONE_INVALID_ARGUMENT);

  // A program of an older version, whose struct ended behind `dtype`: nothing behind it is read or written.
  struct {
    std::size_t size;
    std::int32_t op, dtype, guard;
  } older{0, 0, 0, 12345};
  const std::size_t size = offsetof(hone_reduce_spec, accumulator);
  ASSERT_EQ(hone_reduce_spec_init(reinterpret_cast<hone_reduce_spec*>(&older), size), HONE_OK) << hone_last_error();
  EXPECT_EQ(older.guard, 12345);
  EXPECT_EQ(hone_reduce(session_, reinterpret_cast<hone_reduce_spec*>(&older), &in, 1, &out, nullptr, nullptr), HONE_OK)
      << hone_last_error();
  EXPECT_EQ(out, 2);
}

TEST_F(CApi, ErrorsBelongToTheirThread) {
  EXPECT_EQ(hone_op("nowhere"), -1);
  std::thread([] {
    EXPECT_STREQ(hone_last_error(), "");
    EXPECT_EQ(hone_op("elsewhere"), -1);
  }).join();
  EXPECT_THAT(hone_last_error(), HasSubstr("nowhere"));
}

TEST(CStatus, HasNames) {
  for (hone_status status = HONE_OK; status <= HONE_INTERNAL; ++status)
    EXPECT_EQ(std::string(hone_status_name(status)).rfind("HONE_", 0), 0u) << status;
  EXPECT_STREQ(hone_status_name(99), "unknown status");
}

TEST_F(CApi, TellsDevices) {
  char* text = nullptr;
  ASSERT_EQ(hone_devices(&text), HONE_OK);
  EXPECT_THAT(json::parse(taken(text)), testing::Contains("host"));
  ASSERT_EQ(hone_device_facts(device_, &text), HONE_OK);
  EXPECT_EQ(json::parse(taken(text))["kind"], "host");
  EXPECT_STREQ(hone_device_name(device_), "host");
}

}  // namespace
