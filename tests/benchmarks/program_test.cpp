// Tests the common part of the benchmark programs, from the command line to the exit code and the JSON file.
#include "benchmarks/common/program.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

#include <hone/error.h>
#include <nlohmann/json.hpp>

#include "benchmarks/common/figures.h"

#include "tests/runtime/support/temp_folder.h"
#include "tests/support/names.h"

namespace hone::benchmarks {
namespace {

using test::Names;

int run_with(std::vector<std::string> words, RunOptions& options, const std::function<bool()>& run) {
  words.insert(words.begin(), "program");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return run_program(
      "program", static_cast<int>(arguments.size()), arguments.data(),
      [&](CommandLine& command_line) { add_run_options(command_line, options); }, run);
}

TEST(BenchmarkProgram, ExitCodeSaysWhatCameOfTheRun) {
  RunOptions options;
  EXPECT_EQ(run_with({}, options, [] { return true; }), 0);
  EXPECT_EQ(run_with({}, options, [] { return false; }), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_with({}, options, []() -> bool { throw std::runtime_error("the disk is gone"); }), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "program: the disk is gone\n");
}

TEST(BenchmarkProgram, OptionsAreReadBeforeTheRunAndWrongOnesPreventIt) {
  RunOptions options;
  EXPECT_EQ(run_with({"--device", "host", "--budget", "70", "--json", "a.json"}, options, [&] {
              return options.device == "host" && options.budget_ms == 70 && options.json == "a.json";
            }), 0);
  bool has_run = false;
  testing::internal::CaptureStderr();
  EXPECT_NE(run_with({"--budget", "-3"}, options, [&] { return has_run = true; }), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Names("--budget"));
  EXPECT_FALSE(has_run);
}

TEST(BenchmarkProgram, SettingsAreEachContextAmongEachCompany) {
  EXPECT_EQ(SettingOptions{}.settings().size(), 6u);
  const SettingOptions options{.contexts = {"graph"}, .companies = {"nobody", "itself"}};
  EXPECT_THAT(options.settings(), testing::ElementsAre(Setting{LaunchContext::graph, Company::itself},
                                                       Setting{LaunchContext::graph, Company::nobody}));
  EXPECT_EQ(name(options.settings().back()), "graph alone");
}

TEST(BenchmarkProgram, RowsOfAllProgramsHaveTheSameFigures) {
  DeviceFacts facts;
  facts.name = "a GPU";
  nlohmann::ordered_json run = run_json(facts, 60, {"n", "context", "company"});
  nlohmann::ordered_json row{{"n", 7}};
  const Timing hone{.median_us = 2, .spread_us = 0.1, .batches = 20, .host_share = 0.5};
  add_timings(row, {LaunchContext::graph, Company::others}, hone, {{"CUB", {.median_us = 3}, false}});
  run["rows"].push_back(row);
  EXPECT_EQ(run["device"], "a GPU");
  EXPECT_EQ(run["budget_ms"], 60);
  for (const auto& member : run["key"]) EXPECT_TRUE(row.contains(member)) << member;
  EXPECT_EQ(row["host_share"], 0.5);
  EXPECT_EQ(row["peers"]["CUB"]["ratio"], 1.5);
  EXPECT_EQ(row["peers"]["CUB"]["agrees"], false);
}

TEST(BenchmarkProgram, CeilingIsTheLeastTimeOfWhoeverIsRight) {
  const Timing hone{.median_us = 2}, read{.median_us = 1.5}, faster{.median_us = 1}, wrong{.median_us = 0.5};
  const std::vector<PeerTiming> peers{{"CUB", faster}, {"off", wrong, false}};
  EXPECT_EQ(ceiling_of({"bulk read", read}, hone, {}).by, "bulk read");
  EXPECT_DOUBLE_EQ(ceiling_of({"bulk read", read}, hone, {}).percent(hone), 75);
  EXPECT_EQ(ceiling_of({"bulk read", read}, hone, peers).by, "CUB");
  EXPECT_DOUBLE_EQ(ceiling_of({"read", {.median_us = 3}}, hone, {}).percent(hone), 100) << "Hone's own call counts";
  nlohmann::ordered_json row;
  add_ceiling(row, {"bulk read", read}, hone, peers);
  EXPECT_EQ(row["ceiling_us"], 1);
  EXPECT_EQ(row["ceiling_by"], "CUB");
  EXPECT_EQ(row["percent_of_ceiling"], 50);
  EXPECT_EQ(row["plain_us"], 1.5);
}

TEST(BenchmarkProgram, WhatAddsNoTimeAmongOthersIsNoCeiling) {
  const Timing nothing{.median_us = -0.1}, hone{.median_us = 2};
  EXPECT_DOUBLE_EQ(ceiling_of({"read", nothing}, hone, {}).us, 2);
  EXPECT_TRUE(std::isnan(ceiling_of({"read", hone}, nothing, {}).percent(nothing)));
  nlohmann::ordered_json row;
  add_ceiling(row, {"read", nothing}, nothing, {});
  EXPECT_FALSE(row.contains("ceiling_us"));
}

TEST(BenchmarkProgram, JsonFilesAreWrittenWholeOrRefusedByName) {
  const TempFolder folder;
  const nlohmann::ordered_json json{{"b", 1}, {"a", {1.5, "x"}}};
  write_json((folder / "a.json").string(), {{"longer", std::string(1000, 'x')}});
  write_json((folder / "a.json").string(), json);
  std::ifstream file(folder / "a.json");
  EXPECT_EQ(nlohmann::ordered_json::parse(file), json);
  write_json("", json);
  try {
    write_json((folder / "nowhere/a.json").string(), json);
    FAIL() << "there is no such folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io_failed);
    EXPECT_THAT(error.what(), Names("nowhere/a.json"));
  }
}

}  // namespace
}  // namespace hone::benchmarks
