// Devices and sessions of the C interface.
#include <nlohmann/json.hpp>

#include "tests/bindings/c/c_fixture.h"

namespace hone::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(CApi, TellsDevices) {
  char* text = nullptr;
  ASSERT_EQ(hone_devices(&text), HONE_OK);
  EXPECT_THAT(json::parse(taken(text)), testing::Contains("host"));
  ASSERT_EQ(hone_device_facts(device_, &text), HONE_OK);
  EXPECT_EQ(json::parse(taken(text))["kind"], "host");
  EXPECT_STREQ(hone_device_name(device_), "host");
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
    if (which == 2) options.cache_max_bytes = -1;  // as all below 1 MiB but 0
    hone_session* session = nullptr;
    EXPECT_EQ(hone_session_create(device_, &options, &session), HONE_INVALID_ARGUMENT) << which;
    EXPECT_THAT(hone_last_error(), HasSubstr("-"));
    EXPECT_EQ(session, nullptr);
  }
}

TEST_F(CApi, EnergyIsRefusedWhereNothingCountsIt) {
  hone_session_options options;
  ASSERT_EQ(hone_session_options_init(&options, sizeof options), HONE_OK);
  EXPECT_EQ(options.objective, HONE_OBJECTIVE_TIME);
  options.objective = 2;
  hone_session* session = nullptr;
  EXPECT_EQ(hone_session_create(device_, &options, &session), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_last_error(), HasSubstr("HONE_OBJECTIVE_TIME"));
  options.objective = HONE_OBJECTIVE_ENERGY;
  options.cache_path = "";
  ASSERT_EQ(hone_session_create(device_, &options, &session), HONE_OK) << hone_last_error();
  hone_problem* problem = nullptr;
  const hone_reduce_spec spec = reduction("max", "f32");
  ASSERT_EQ(hone_problem_reduce(&spec, 100, 16, &problem), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_tune(session, problem, 10, nullptr), HONE_UNSUPPORTED);
  EXPECT_THAT(hone_last_error(), HasSubstr("HONE_NVML"));
  hone_problem_destroy(problem);
  hone_session_destroy(session);
}

TEST_F(CApi, CountersNameACacheWhosePathIsNoUtf8) {
  hone_session_options options;
  ASSERT_EQ(hone_session_options_init(&options, sizeof options), HONE_OK);
  options.on_miss = HONE_ON_MISS_HEURISTIC;
  options.cache_path = "/dev/null/\xff.sqlite";
  hone_session* session = nullptr;
  ASSERT_EQ(hone_session_create(device_, &options, &session), HONE_OK) << hone_last_error();
  hone_problem* problem = nullptr;
  const hone_reduce_spec spec = reduction("max", "f32");
  ASSERT_EQ(hone_problem_reduce(&spec, 100, 16, &problem), HONE_OK) << hone_last_error();
  EXPECT_EQ(hone_prepare(session, problem, nullptr), HONE_OK) << hone_last_error();
  hone_tune(session, problem, 10, nullptr);  // its winner is stored nowhere
  char* text = nullptr;
  ASSERT_EQ(hone_session_counters(session, &text), HONE_OK) << hone_last_error();
  EXPECT_THAT(json::parse(taken(text))["last_cache_failure"].get<std::string>(), HasSubstr("/dev/null/"));
  hone_problem_destroy(problem);
  hone_session_destroy(session);
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

}  // namespace
}  // namespace hone::test
