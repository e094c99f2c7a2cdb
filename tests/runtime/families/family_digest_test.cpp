#include <hone/kernel_family.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <hone/copy.h>
#include <hone/sdk/family_table.h>
#include <hone/softmax.h>
#include <hone/transpose.h>
#include <hone/tuned_reduce.h>

#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

TEST(FamilyDigest, IsTheSameForTheSameFamily) {
  EXPECT_EQ(family_digest(TotalFamily()), family_digest(TotalFamily()));
  EXPECT_EQ(family_digest(reduce_family()), family_digest(reduce_family()));
  EXPECT_EQ(family_digest(reduce_family()).size(), 32u);
}

TEST(FamilyDigest, ChangesWithEverythingThatDecidesTheCode) {
  std::set<std::string> digests{family_digest(TotalFamily())};
  const auto add = [&](const TotalFamily& family) { EXPECT_TRUE(digests.insert(family_digest(family)).second); };

  add(TotalFamily({.name = "other"}));
  add(TotalFamily({.version = 2}));
  add(TotalFamily({.sources = {{"total.cuh", "// another text"}}}));
  add(TotalFamily({.sources = {{"other.cuh", "// text"}}}));
  add(TotalFamily({.sources = {{"total.cuh", "// text"}, {"more.cuh", ""}}}));
  add(TotalFamily({.sources = {}}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {128}}, {"work", {1, 2, 4}}, {"finish", {0, 1}}})}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {256, 128}}, {"work", {1, 2, 4}}, {"finish", {0, 1}}})}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {128, 256}}, {"unroll", {1, 2, 4}}, {"finish", {0, 1}}})}));
  add(TotalFamily({.space = ParameterSpace({{"threads", {128, 256}},
                                            {"work", {1, 2, 4}},
                                            {"finish", {0, 1}, {"alone", "together"}}})}));
}

/// Returns true if a family's winners depend on the text of a template.
bool uses(const KernelFamily& family, std::string_view file) {
  const auto sources = family.sources();
  return std::any_of(sources.begin(), sources.end(), [&](const SourceFile& source) { return source.name == file; });
}

TEST(FamilyDigest, CoversTheTemplatesThatUnitsIncludeAndNoOthers) {
  for (const FamilyRow& row : built_in_families())
    EXPECT_TRUE(uses(row.family(), "grid.cuh")) << row.family().name();
  EXPECT_TRUE(uses(reduce_family(), "logsumexp.cuh"));
  EXPECT_FALSE(uses(reduce_family(), "softmax.cuh"));
  EXPECT_FALSE(uses(reduce_family(), "reduce_rows.cuh"));
  EXPECT_TRUE(uses(softmax_family(), "row_pipeline.cuh"));
  EXPECT_TRUE(uses(softmax_family(), "row_held.cuh"));
  EXPECT_TRUE(uses(rms_norm_family(), "row_pipeline.cuh"));
  EXPECT_FALSE(uses(softmax_family(), "reduce_rows.cuh"));
  EXPECT_FALSE(uses(copy_family(), "transpose.cuh"));
}

TEST(FamilyDigest, DoesNotLetNeighbouringTextsRunTogether) {
  EXPECT_NE(family_digest(TotalFamily({.sources = {{"ab", "c"}}})),
            family_digest(TotalFamily({.sources = {{"a", "bc"}}})));
}

}  // namespace
}  // namespace hone
