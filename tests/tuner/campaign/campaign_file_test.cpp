#include "tuner/campaign/campaign_file.h"

#include <gmock/gmock.h>
#include <hone/kernel_family.h>
#include <hone/tuned_reduce.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/campaign/presets.h"
#include "tuner/problems/families.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/problem_text.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using test::Names;
using ::testing::StartsWith;

std::string complaint(std::string_view text, FileFormat format = FileFormat::json) {
  try {
    parse_campaign(text, format, "c");
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::input);
    return error.what();
  }
  return "no complaint";
}

std::vector<std::string> labels(const CampaignFile& file) {
  std::vector<std::string> labels;
  for (const WeightedProblem& weighted : file.problems) labels.push_back(problem_label(weighted.problem));
  return labels;
}

TEST(CampaignFile, HeaviestProblemsComeFirst) {
  const CampaignFile file = parse_campaign(R"({
    "budget": "500ms", "total_budget": "1min", "exhaustive": true, "warm": true,
    "problems": [
      {"op": "max", "size": [1024, "2^12"]},
      {"op": ["dot"], "dtype": "bf16", "size": 4096, "align": [4], "context": "graph", "nan": "ignore",
       "numerics": "fast", "accumulator": "f64", "result": "f64", "weight": 2.5}
    ]})",
                                           FileFormat::json, "c");
  EXPECT_THAT(labels(file), ElementsAre("dot bf16 2^12 in f64 to f64 NaN ignored align 4 graph", "max f32 2^10",
                                         "max f32 2^12"));
  EXPECT_EQ(file.problems[0].weight, 2.5);
  EXPECT_EQ(file.budget, 500ms);
  EXPECT_EQ(file.total_budget, 60s);
  EXPECT_EQ(file.exhaustive, true);
  EXPECT_EQ(file.inputs, InputState::warm);
}

TEST(CampaignFile, AProblemOfSeveralEntriesCountsOnceWithTheLargestWeight) {
  const CampaignFile file = parse_campaign(
      R"({"problems": [{"size": 1024, "weight": 2}, {"size": [1024, 2048]}, {"size": 2048, "weight": 3}]})",
      FileFormat::json, "c");
  EXPECT_THAT(labels(file), ElementsAre("sum f32 2^11", "sum f32 2^10"));
  EXPECT_EQ(file.problems[0].weight, 3);
}

struct BadFile {
  std::string text;
  std::string message;
};

class BadCampaign : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadCampaign, SaysWhereAndWhat) { EXPECT_THAT(complaint(GetParam().text), StartsWith(GetParam().message)); }

INSTANTIATE_TEST_SUITE_P(
    Json, BadCampaign,
    ::testing::Values(
        BadFile{"{\n  \"budgte\": \"2s\"}", "c:2:3: a campaign has no field 'budgte' (did you mean 'budget'?)"},
        BadFile{"{\"problems\": [\n {\"opp\": \"sum\"}]}", "c:2:3: a problem has no field 'opp' (did you mean 'op'?)"},
        BadFile{"{\"problems\": [{\"op\":\n\n  \"sun\"}]}", "c:3:3: unknown operation 'sun' (did you mean 'sum'?)"},
        BadFile{"{\"problems\": [{\"dtype\": [\"f32\", \"f23\"]}]}", "c:1:25: unknown dtype 'f23'"},
        BadFile{"{\"problems\": [{\"size\": 0}]}", "c:1:24: '0' is not a size"},
        BadFile{"{\"problems\": [{\"size\": 1.5}]}", "c:1:24: 'size' is 1.5, which is no whole number"},
        BadFile{"{\"problems\": [{\"size\": 9007199254740993}]}", "c:1:24: 9007199254740993 would become"},
        BadFile{"{\"weight\": -9223372036854775807}", "c:1:12: -9223372036854775807 would become"},
        BadFile{"{\"problems\": [{\"size\": []}]}", "c:1:24: 'size' is an empty list"},
        BadFile{"{\"problems\": [{\"weight\": 0}]}", "c:1:26: a weight is above 0"},
        BadFile{"{\"problems\": [{\"weight\": \"much\"}]}", "c:1:26: 'weight' is a text, and must be a number"},
        BadFile{"{\"problems\": [{\"context\": [\"graph\"]}]}", "c:1:27: 'context' is a list, and must be a text"},
        BadFile{"{\"problems\": [3]}", "c:1:15: 'problems' is a number, and must be a table"},
        BadFile{"{\"problems\": {}}", "c:1:14: 'problems' is a table, and must be a list of tables"},
        BadFile{"{\"problems\": []}", "c:1:1: there is nothing to tune"},
        BadFile{"{}", "c:1:1: there is nothing to tune"},
        BadFile{"[]", "c:1:1: the file is a table of fields, and this is a list"},
        BadFile{"{\"warm\": 1, \"problems\": [{}]}", "c:1:10: 'warm' is a number, and must be true or false"},
        BadFile{"{\"budget\": \"2\", \"problems\": [{}]}", "c:1:12: '2' is not a duration"},
        BadFile{"{\"budget\": null}", "c:1:12: null means nothing here"},
        BadFile{"{\"warm\": true,\n \"warm\": false}", "c:2:2: 'warm' is given twice, first in line 1"},
        BadFile{"{\"problems\": [{\"op\": \"sum\",\n \"op\": \"max\"}]}",
                "c:2:2: 'op' is given twice, first in line 1"},
        BadFile{"{\"budget\": \"2s\",\n\"total_budget\": \"1s\", \"problems\": [{}]}",
                "c:2:1: total_budget is for all"},
        BadFile{"{\"problems\": [{\"dtype\": \"f64\", \"align\": 4}]}", "c:1:15: no problem is left: arrays of f64"},
        BadFile{"{\"problems\": [{\"op\": \"logsumexp\", \"dtype\": \"i32\"}]}", "c:1:15: no problem is left: "},
        BadFile{"{\"problems\": [{\"op\": \"max\", \"result\": \"f64\"}]}", "c:1:15: no problem is left: "},
        BadFile{"{\"problems\": [{\"op\" \"sum\"}]}", "c:1:"}, BadFile{"", "c:1:1: "},
        BadFile{"{\"é\": 1, \"x\": 2}", "c:1:2: a campaign has no field 'é'"},
        BadFile{"{\"\\\"\": 1}", "c:1:2: a campaign has no field '\"'"},
        BadFile{std::string(100, '['), "c:1:33: lists and tables lie too deep"}));

#ifdef HONE_WITH_TOML
TEST(CampaignFileToml, SaysTheSameAsJson) {
  const CampaignFile file = parse_campaign(R"(budget = "500ms"
[[problems]]
op = ["sum", "max"]
size = 1024
[[problems]]
op = "min"
size = "2^10..2^11"
weight = 3
)",
                                           FileFormat::toml, "c");
  EXPECT_THAT(labels(file), ElementsAre("min f32 2^10", "min f32 2^11", "sum f32 2^10", "max f32 2^10"));
  EXPECT_EQ(file.budget, 500ms);
}

TEST(CampaignFileToml, ComplaintsNameLineAndColumn) {
  const auto toml = [](std::string_view text) { return complaint(text, FileFormat::toml); };
  EXPECT_THAT(toml("budget = \"2s\"\n[[problems]]\nopp = 1\n"), StartsWith("c:3:1: a problem has no field 'opp'"));
  EXPECT_THAT(toml("[[problems]]\nop = \"sun\"\n"), StartsWith("c:2:6: unknown operation 'sun'"));
  EXPECT_THAT(toml("[[problems]]\nop = 1\nop = 2\n"), StartsWith("c:3:"));
  EXPECT_THAT(toml("budget = 2026-11-21\n"), StartsWith("c:1:10: dates and times mean nothing here"));
  EXPECT_THAT(toml("budget = = 3\n"), StartsWith("c:1:"));
  EXPECT_THAT(toml("[[problems]]\nsize = 9007199254740993\n"), StartsWith("c:2:8: 9007199254740993 would become"));
}

TEST(CampaignFileToml, DeepTablesAreRefused) {
  const std::string lists = std::string(100, '[') + std::string(100, ']');
  std::string bare, quoted;
  for (int i = 0; i < 100'000; ++i) bare += "a.", quoted += R"(".,='" . '",' .)";
  for (const std::string& deep : {bare + "b = 1", quoted + "b = 1", "[" + bare + "b]", "x = {" + bare + "b = 1}",
                                  R"(x = {y = """it's"""", )" + bare + "b = 1}", "x = " + lists})
    EXPECT_THAT(complaint(deep, FileFormat::toml), Names("too deep")) << deep.substr(0, 40);
}

TEST(CampaignFileToml, DotsThatJoinNoKeysAreNotCounted) {
  const std::string dots(1000, '.');
  EXPECT_THAT(complaint("# " + dots + "\nbudget = '''\n" + dots + "'''\n", FileFormat::toml), Names("duration"));
  std::string list;
  for (int i = 0; i < 1000; ++i) list += "1.5, ";
  EXPECT_THAT(complaint("budget = [" + list + "]\n", FileFormat::toml), Names("'budget' is a list"));
}
#else
TEST(CampaignFileToml, IsRefusedWithoutToml) {
  EXPECT_THAT(complaint("", FileFormat::toml), Names("built", "without toml++"));
}
#endif

TEST(CampaignFile, TheNameSaysWhatItIs) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "a.json", R"({"problems": [{"size": 1024}]})");
  EXPECT_EQ(read_campaign_file(folder / "a.json").problems.size(), 1U);
  EXPECT_THROW(read_campaign_file(folder / "a.yaml"), CommandError);
  EXPECT_THROW(read_campaign_file(folder / "none.json"), CommandError);
}

TEST(Presets, AreWellFormedAndGrow) {
  std::size_t before = 0;
  for (const char* name : {"quick", "standard", "full"}) {
    const CampaignFile preset = read_preset(name);
    EXPECT_GT(preset.problems.size(), before) << name;
    before = preset.problems.size();
  }
  EXPECT_EQ(embedded::campaign_presets().size(), 3U);
  EXPECT_LE(*read_preset("standard").total_budget, 10min);
}

TEST(Presets, StandardHasEveryOperationOnEveryDTypeThatItIsDefinedFor) {
  const CampaignFile preset = read_preset("standard");
  for (const ReduceOpInfo& op : kReduceOps)
    for (const auto& dtype : kDTypes) {
      const bool is_there = std::any_of(preset.problems.begin(), preset.problems.end(), [&](const auto& weighted) {
        return weighted.problem.operation == static_cast<std::uint8_t>(op.op) && weighted.problem.dtype == dtype.dtype;
      });
      EXPECT_EQ(is_there, reduce_supports(op.op, dtype.dtype)) << op.name << ' ' << dtype.name;
    }
}

TEST(Presets, UnknownOnesAreRefused) {
  try {
    read_preset("qick");
    FAIL();
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), Names("'quick'"));
  }
}

TEST(Preset, HasWhatTheRowsOfFamiliesSay) {
  std::map<std::string_view, std::set<std::string>> tuned;
  for (const char* const name : {"quick", "standard", "full"}) {
    const std::vector<std::string> of_preset = labels(read_preset(name));
    tuned[name].insert(of_preset.begin(), of_preset.end());
  }
  for (const FamilyRow& row : built_in_families())
    for (const PresetPart& part : row.presets) {
      if (part.preset.empty()) continue;
      const std::vector<Problem> problems = list_problems({.family = std::string(row.family().name()),
                                                           .ops = std::string(part.operations),
                                                           .dtypes = std::string(part.dtypes),
                                                           .sizes = std::string(part.shapes)});
      for (const Problem& problem : problems)
        EXPECT_EQ(tuned[part.preset].count(problem_label(problem)), 1U) << part.preset << ' ' << problem_label(problem);
    }
}

}  // namespace
}  // namespace hone::tuner
