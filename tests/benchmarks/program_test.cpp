// What the benchmark programs have in common, from the command line to the exit code and the JSON file.
#include "benchmarks/common/program.h"

#include <gmock/gmock.h>

#include <fstream>
#include <stdexcept>

#include <hone/error.h>
#include <nlohmann/json.hpp>

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
