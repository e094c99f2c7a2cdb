#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/layering/include_rules.h"
#include "tests/support/names.h"

namespace hone::layering {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using test::Names;
using testing::IsEmpty;

/// A source tree made for one test.
class PlantedTree : public testing::Test {
 protected:
  PlantedTree() : tree_(fs::path(testing::TempDir()) / fmt::format("hone_planted_tree_{}", getpid())) {
    fs::remove_all(tree_);
  }
  ~PlantedTree() override { fs::remove_all(tree_); }

  void plant(std::string_view file, std::string_view text) {
    const fs::path path = tree_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::vector<std::string> violations() const { return find_violations(tree_, house_rules()); }

 private:
  fs::path tree_;
};

TEST(Layering, SourceTreeKeepsTheRules) { EXPECT_THAT(find_violations(HONE_SOURCE_FOLDER, house_rules()), IsEmpty()); }

TEST(Layering, RulesAllowNoCycle) { EXPECT_THAT(find_allowed_cycle(house_rules()), IsEmpty()); }

TEST(Layering, CycleInRulesIsFound) {
  const IncludeRules rules{
      .folders = {{.folder = "top/", .may_include = {"a/"}},
                  {.folder = "a/", .may_include = {"b/only_this.h"}},
                  {.folder = "b/", .may_include = {"a/"}}},
      .libraries = {},
      .roots = {"top/", "a/", "b/"},
  };
  EXPECT_THAT(find_allowed_cycle(rules), ElementsAre("a/", "b/"));
}

TEST_F(PlantedTree, GoodIncludesPass) {
  plant("kernel_templates/pack.cuh", "");
  plant("kernel_templates/reduce.cuh", "#include \"pack.cuh\"\n");
  plant("cache/store.h", "#include <string>\n");
  plant("cache/store.cpp", "#include \"cache/store.h\"\n#include <sqlite3.h>\n");
  plant("runtime/include/hone/error.h", "#include <stdexcept>\n");
  plant("runtime/dispatch/session.cpp", "#include <hone/error.h>\n#include \"cache/store.h\"\n");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(PlantedTree, CacheKnowsNothingOfTheRuntime) {
  plant("cache/store.cpp", "\n#include <hone/device.h>\n");
  EXPECT_THAT(violations(), ElementsAre(Names("cache/store.cpp:2", "hone/device.h")));
}

TEST_F(PlantedTree, CacheKnowsNoCuda) {
  plant("cache/store.cpp", "#include <cuda_runtime_api.h>\n");
  EXPECT_THAT(violations(), ElementsAre(Names("only", "[runtime/device/cuda/")));
}

TEST_F(PlantedTree, OnlyTheCacheKnowsSqlite) {
  plant("runtime/dispatch/session.cpp", "#  include <sqlite3.h>\n");
  EXPECT_THAT(violations(), ElementsAre(Names("only", "[cache/]")));
}

TEST_F(PlantedTree, RuntimeKnowsNothingOfTheTuner) {
  plant("tuner/text/report.h", "");
  plant("runtime/dispatch/session.cpp", "#include \"tuner/text/report.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("tuner/text/report.h")));
}

TEST_F(PlantedTree, TunerUsesThePublicRuntimeOnly) {
  plant("runtime/search/model.h", "");
  plant("tuner/text/report.cpp", "#include \"runtime/search/model.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("tuner/text/", "include")));
}

TEST_F(PlantedTree, StageKnowsNoLaterStage) {
  plant("runtime/measure/race.h", "");
  plant("runtime/search/candidates.cpp", "#include \"runtime/measure/race.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("runtime/search/", "include")));
}

TEST_F(PlantedTree, NeighbourIsFoundWithoutItsFolder) {
  plant("runtime/measure/race.h", "");
  plant("runtime/search/candidates.cpp", "#include \"../measure/race.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("runtime/search/", "include")));
}

TEST_F(PlantedTree, DevicesKnowNothingOfEachOther) {
  plant("runtime/device/host/sm_pool.h", "");
  plant("runtime/device/cuda/cuda_device.cpp", "#include \"runtime/device/host/sm_pool.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("runtime/device/cuda/", "include")));
}

TEST_F(PlantedTree, PublicHeadersNeedOnlyThemselvesAndTheStandardLibrary) {
  plant("cache/store.h", "");
  plant("runtime/include/hone/session.h",
        "#include <vector>\n#include <fmt/format.h>\n#include \"cache/store.h\"\n#include <unistd.h>\n");
  EXPECT_THAT(violations(), ElementsAre(Names("session.h:2"), Names("session.h:3"), Names("session.h:4")));
}

TEST_F(PlantedTree, FamilySeesNoCalls) {
  plant("runtime/include/hone/session.h", "");
  plant("runtime/include/hone/copy_spec.h", "");
  plant("runtime/include/hone/copy.h", "#include <hone/copy_spec.h>\n#include <hone/session.h>\n");
  plant("runtime/families/copy/copy_family.h", "#include <hone/copy.h>\n");
  plant("runtime/families/copy/copy_family.cpp", "#include <hone/copy_spec.h>\n");
  plant("runtime/dispatch/tuned_copy.cpp", "#include <hone/copy.h>\n");
  EXPECT_THAT(violations(), ElementsAre(Names("copy_family.h", "includes", "runtime/include/hone/copy.h")));
}

TEST_F(PlantedTree, AFamilyKnowsItselfAndWhatAllShare) {
  plant("runtime/families/counts.h", "");
  plant("runtime/families/copy/copy_family.h", "#include \"runtime/families/counts.h\"\n");
  plant("runtime/families/copy/copy_family.cpp", "#include \"runtime/families/copy/copy_family.h\"\n");
  plant("runtime/families/anew/anew_family.cpp",
        "#include \"runtime/families/counts.h\"\n#include \"runtime/families/copy/copy_family.h\"\n");
  plant("runtime/families/custom/custom_family.cpp",
        "#include \"runtime/families/counts.h\"\n#include \"runtime/families/copy/copy_family.h\"\n");
  plant("runtime/families/shared.cpp", "#include \"runtime/families/copy/copy_family.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("anew_family.cpp:2"), Names("custom_family.cpp:2"),
                                        Names("shared.cpp:1")));
}

TEST_F(PlantedTree, KernelTemplatesAreHeaderFree) {
  plant("runtime/include/hone/dtype.h", "");
  plant("kernel_templates/reduce.cuh", "#include <cstdint>\n#include <hone/dtype.h>\n#include <cuda_fp16.h>\n");
  EXPECT_THAT(violations(), testing::SizeIs(3));
}

TEST_F(PlantedTree, UnknownFoldersHeadersAndFilesAreReported) {
  plant("runtime/extra/thing.cpp", "");
  plant("tuner/text/report.cpp", "#include <bzlib.h>\n#include \"tuner/gone.h\"\n");
  EXPECT_THAT(violations(), ElementsAre(Names("runtime/extra/thing.cpp", "no rule", "folder"),
                                        Names("no rule", "header"), Names("no such file")));
}

}  // namespace
}  // namespace hone::layering
