// The functions of the C interface ahead of the calls: problems, tunings, and what is stored of them.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "tests/bindings/c/c_fixture.h"

namespace hone::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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

}  // namespace
}  // namespace hone::test
