#include <hone/policy.h>

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace hone {
namespace {

ParameterSpace small_space() {
  return ParameterSpace({{"threads", {128, 256}}, {"unroll", {1, 2, 4}}, {"tail", {0, 1}, {"shuffle", "tree"}}});
}

TEST(ParameterSpace, AllIsTheWholeProductInLexicographicOrder) {
  const std::vector<Policy> all = small_space().all();
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(all.front(), (Policy{128, 1, 0}));
  EXPECT_EQ(all[1], (Policy{128, 1, 1}));
  EXPECT_EQ(all[2], (Policy{128, 2, 0}));
  EXPECT_EQ(all.back(), (Policy{256, 4, 1}));
}

TEST(ParameterSpace, WithoutParametersThereIsOneEmptyPolicy) {
  const ParameterSpace space({});
  EXPECT_EQ(space.all(), std::vector<Policy>{Policy{}});
  EXPECT_EQ(space.to_string(Policy{}), "");
  EXPECT_EQ(space.parse(""), Policy{});
  EXPECT_EQ(space.parse(" "), std::nullopt);
}

TEST(ParameterSpace, AParameterWithoutValuesLeavesNoPolicy) {
  EXPECT_TRUE(ParameterSpace({{"threads", {}}, {"unroll", {1}}}).all().empty());
}

TEST(ParameterSpace, SpellsNamedValuesByName) {
  EXPECT_EQ(small_space().to_string({256, 2, 1}), "threads=256 unroll=2 tail=tree");
}

TEST(ParameterSpace, ParsesWhatItSpells) {
  const ParameterSpace space = small_space();
  std::set<std::string> texts;
  for (const Policy& policy : space.all()) {
    const std::string text = space.to_string(policy);
    EXPECT_EQ(space.parse(text), policy) << text;
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

TEST(ParameterSpace, HoldsAtMostSixteenParameters) {
  const std::vector<Parameter> most(Policy::kMaxParameters, Parameter{"p", {1, 2}});
  EXPECT_EQ(ParameterSpace(most).all().size(), 65536u);
  std::vector<Parameter> more = most;
  more.push_back({"p", {1}});
  EXPECT_THROW(ParameterSpace{more}, std::length_error);
}

TEST(Policy, HoldsAtMostSixteenValues) {
  Policy policy{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(policy.size(), 16);
  EXPECT_EQ(policy[7], 8);
  EXPECT_THROW(policy.push_back(17), std::length_error);
}

enum class Scope : std::int32_t { warp, block };
struct Fields {
  std::int32_t threads = 128;
  Scope scope = Scope::warp;
  std::int32_t lanes = 0;
  bool operator==(const Fields&) const = default;
};

/// Lanes are a choice of warps alone.
ParameterSpace conditional_space() {
  return space_of<Fields>(PolicyField{&Fields::threads, ordinal("threads", {128, 256})},
                          PolicyField{&Fields::scope, categorical("scope", {"warp", "block"})},
                          PolicyField{&Fields::lanes,
                                      ordinal("lanes", {8, 32}).only_if("scope", {Scope::warp}).otherwise(1)});
}

TEST(ParameterSpace, AnAbsentParameterHasOneValueAndNoText) {
  const ParameterSpace space = conditional_space();
  std::vector<std::string> texts;
  for (const Policy& policy : space.all()) texts.push_back(space.to_string(policy));
  EXPECT_EQ(texts, (std::vector<std::string>{"threads=128 scope=warp lanes=8", "threads=128 scope=warp lanes=32",
                                             "threads=128 scope=block", "threads=256 scope=warp lanes=8",
                                             "threads=256 scope=warp lanes=32", "threads=256 scope=block"}));
  for (const std::string& text : texts) EXPECT_EQ(space.to_string(space.parse(text).value()), text);
  EXPECT_EQ(space.parse("threads=128 scope=block")->as<Fields>(), (Fields{128, Scope::block, 1}));
}

TEST(ParameterSpace, SaysWhichFieldIsWrongAndWhatItMayBe) {
  const ParameterSpace space = conditional_space();
  const auto fault_of = [&](std::string_view text) {
    std::string fault;
    EXPECT_EQ(space.parse(text, &fault), std::nullopt) << text;
    return fault;
  };
  EXPECT_EQ(fault_of("threads=64 scope=block"), "'threads=64' stands where threads has to be one of 128, 256");
  EXPECT_EQ(fault_of("threads=128 scope=grid"), "'scope=grid' stands where scope has to be one of warp, block");
  EXPECT_EQ(fault_of("threads=128 scope=warp"), "'' stands where lanes has to be one of 8, 32");
  EXPECT_EQ(fault_of("threads=128 scope=block lanes=8"),
            "'lanes=8' is no parameter of a policy that begins with 'threads=128 scope=block'");
}

TEST(ParameterSpace, AConditionNamesAnEarlierParameter) {
  EXPECT_THROW(ParameterSpace({ordinal("lanes", {8}).only_if("scope", {0}), categorical("scope", {"warp"})}),
               std::logic_error);
}

TEST(Policy, IsTheStructThatItsSpaceWasMadeOf) {
  const Fields fields{256, Scope::warp, 32};
  EXPECT_EQ(Policy::of(fields), (Policy{256, 0, 32}));
  EXPECT_EQ(Policy::of(fields).as<Fields>(), fields);
}

TEST(Policy, TheOrderOfTheMembersIsThatOfTheParameters) {
  const auto swapped = [] {
    return space_of<Fields>(PolicyField{&Fields::scope, categorical("scope", {"warp", "block"})},
                            PolicyField{&Fields::threads, ordinal("threads", {128, 256})},
                            PolicyField{&Fields::lanes, ordinal("lanes", {8, 32})});
  };
  EXPECT_THROW(swapped(), std::logic_error);
}

TEST(Policy, DiffersByLengthAndByValue) {
  EXPECT_NE((Policy{1, 0}), (Policy{1}));
  EXPECT_NE((Policy{1, 2}), (Policy{2, 1}));
  EXPECT_EQ((Policy{1, 2}), (Policy{1, 2}));
}

}  // namespace
}  // namespace hone
