#include "tuner/selection.h"

#include <gmock/gmock.h>

#include "tuner/command_error.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Selection, ListsKeepTheirOrderAndDropRepetitions) {
  EXPECT_THAT(parse_ops("max,sum,max"), ElementsAre(ReduceOp::max, ReduceOp::sum));
  EXPECT_THAT(parse_ops("all"), ElementsAre(ReduceOp::sum, ReduceOp::min, ReduceOp::max));
  EXPECT_THAT(parse_dtypes("i64,all"), ElementsAre(DType::i64, DType::f32, DType::f64, DType::i32));
  EXPECT_THAT(parse_alignments("all"), ElementsAre(4U, 8U, 16U));
  EXPECT_THAT(parse_contexts("graph"), ElementsAre(LaunchContext::graph));
  EXPECT_THAT(parse_contexts("both"), ElementsAre(LaunchContext::stream, LaunchContext::graph));
  EXPECT_EQ(parse_miss_policy("heuristic"), MissPolicy::heuristic);
}

TEST(Selection, RefusalsSuggestAndList) {
  const auto refusal = [](auto parse) -> std::string {
    try {
      parse();
    } catch (const CommandError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([] { parse_ops("sun"); }),
            "unknown operation 'sun' (did you mean 'sum'?); known are sum, min, max, all");
  EXPECT_EQ(refusal([] { parse_one_dtype("f16"); }), "unknown dtype 'f16'; known are f32, f64, i32, i64");
  EXPECT_THAT(refusal([] { parse_ops("sum,,min"); }), HasSubstr("unknown operation ''"));
  EXPECT_THAT(refusal([] { parse_alignments("32"); }), HasSubstr("known are 4, 8, 16, all"));
  EXPECT_EQ(refusal([] { parse_contexts("grahp"); }),
            "unknown launch context 'grahp' (did you mean 'graph'?); known are stream, graph, both");
  EXPECT_THAT(refusal([] { open_device("gpu0"); }), HasSubstr("no device name"));
  EXPECT_THAT(refusal([] { open_device("cuda:-1"); }), HasSubstr("no device name"));
  EXPECT_THAT(refusal([] { open_device("hots"); }), HasSubstr("did you mean 'host'?"));
}

}  // namespace
}  // namespace hone::tuner
