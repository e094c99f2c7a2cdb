#include <hone/variant.h>

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace hone {
namespace {

ParameterSpace small_space() {
  return ParameterSpace({{"threads", {128, 256}}, {"unroll", {1, 2, 4}}, {"tail", {0, 1}, {"shuffle", "tree"}}});
}

TEST(ParameterSpace, AllIsTheWholeProductInLexicographicOrder) {
  const std::vector<Variant> all = small_space().all();
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(all.front(), (Variant{128, 1, 0}));
  EXPECT_EQ(all[1], (Variant{128, 1, 1}));
  EXPECT_EQ(all[2], (Variant{128, 2, 0}));
  EXPECT_EQ(all.back(), (Variant{256, 4, 1}));
}

TEST(ParameterSpace, WithoutParametersThereIsOneEmptyVariant) {
  const ParameterSpace space({});
  EXPECT_EQ(space.all(), std::vector<Variant>{Variant{}});
  EXPECT_EQ(space.to_string(Variant{}), "");
  EXPECT_EQ(space.parse(""), Variant{});
  EXPECT_EQ(space.parse(" "), std::nullopt);
}

TEST(ParameterSpace, AParameterWithoutValuesLeavesNoVariant) {
  EXPECT_TRUE(ParameterSpace({{"threads", {}}, {"unroll", {1}}}).all().empty());
}

TEST(ParameterSpace, SpellsNamedValuesByName) {
  EXPECT_EQ(small_space().to_string({256, 2, 1}), "threads=256 unroll=2 tail=tree");
}

TEST(ParameterSpace, ParsesWhatItSpells) {
  const ParameterSpace space = small_space();
  std::set<std::string> texts;
  for (const Variant& variant : space.all()) {
    const std::string text = space.to_string(variant);
    EXPECT_EQ(space.parse(text), variant) << text;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), space.all().size());
}

TEST(ParameterSpace, ParsesNothingElse) {
  const ParameterSpace space = small_space();
  for (const char* text : {
           "",
           " ",
           "garbage",
           "threads=256",
           "threads=256 unroll=2",
           "unroll=2 threads=256 tail=tree",               // another order
           "threads=256 tail=tree unroll=2",               //
           "threads=256 unroll=2 tail=tree extra=1",       // too many
           "threads=256 unroll=2 tail=tree tail=tree",     // twice
           "threads=257 unroll=2 tail=tree",               // not a value of the space
           "threads=256 unroll=3 tail=tree",               //
           "threads=256 unroll=2 tail=1",                  // a number for a named value
           "threads=256 unroll=2 tail=TREE",               //
           "threads=0256 unroll=2 tail=tree",              //
           "threads=+256 unroll=2 tail=tree",              //
           "threads=256.0 unroll=2 tail=tree",             //
           "threads= unroll=2 tail=tree",                  //
           "=256 unroll=2 tail=tree",                      //
           "threads=256  unroll=2 tail=tree",              // stray spaces
           " threads=256 unroll=2 tail=tree",              //
           "threads=256\tunroll=2\ttail=tree",             //
           "threads=256 unroll=2 tail=tree\n",             //
           "threads=99999999999999999999 unroll=2 tail=tree",
       })
    EXPECT_EQ(space.parse(text), std::nullopt) << "'" << text << "'";
}

TEST(ParameterSpace, ParsesNoTrailingSpace) {
  EXPECT_EQ(small_space().parse("threads=256 unroll=2 tail=tree "), std::nullopt);
}

TEST(ParameterSpace, ParsesNoTextWithAZeroByte) {
  using namespace std::string_view_literals;
  EXPECT_EQ(small_space().parse("threads=256 unroll=2 tail=tree\0"sv), std::nullopt);
}

TEST(ParameterSpace, HoldsAtMostEightParameters) {
  const std::vector<Parameter> eight(Variant::kMaxParameters, Parameter{"p", {1, 2}});
  EXPECT_EQ(ParameterSpace(eight).all().size(), 256u);
  std::vector<Parameter> nine = eight;
  nine.push_back({"p", {1}});
  EXPECT_THROW(ParameterSpace{nine}, std::length_error);
}

TEST(Variant, HoldsAtMostEightValues) {
  Variant variant{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(variant.size(), 8);
  EXPECT_EQ(variant[7], 8);
  EXPECT_THROW(variant.push_back(9), std::length_error);
}

TEST(Variant, DiffersByLengthAndByValue) {
  EXPECT_NE((Variant{1, 0}), (Variant{1}));
  EXPECT_NE((Variant{1, 2}), (Variant{2, 1}));
  EXPECT_EQ((Variant{1, 2}), (Variant{1, 2}));
}

}  // namespace
}  // namespace hone
