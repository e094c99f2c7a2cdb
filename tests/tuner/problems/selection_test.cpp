#include "tuner/problems/selection.h"

#include <gmock/gmock.h>

#include "tests/support/names.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using test::Names;

TEST(Selection, ListsKeepTheirOrderAndDropRepetitions) {
  EXPECT_THAT(parse_ops("max,sum,max"), ElementsAre(ReduceOp::max, ReduceOp::sum));
  EXPECT_THAT(parse_ops("all"), ElementsAre(ReduceOp::all));
  EXPECT_EQ(parse_ops("max,every").size(), kReduceOps.size());
  EXPECT_EQ(parse_ops("max,every").front(), ReduceOp::max);
  EXPECT_EQ(parse_dtypes("i64,all").size(), kDTypes.size());
  EXPECT_EQ(parse_dtypes("i64,all").front(), DType::i64);
  EXPECT_THAT(parse_alignments("all"), ElementsAre(1U, 2U, 4U, 8U, 16U));
  EXPECT_THAT(parse_dtypes("float32,half,double,f32,uint8"),
              ElementsAre(DType::f32, DType::f16, DType::f64, DType::u8));
  for (const DTypeInfo& dtype : kDTypes) EXPECT_EQ(parse_one_dtype(std::string(dtype.array_name)), dtype.dtype);
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
  EXPECT_THAT(refusal([] { parse_ops("sun"); }), Names("'sun'", "'sum'"));
  for (const ReduceOpInfo& op : kReduceOps)
    EXPECT_THAT(refusal([] { parse_ops("sun"); }), Names(std::string(op.name) + ", "));
  EXPECT_THAT(refusal([] { parse_one_dtype("c64"); }), Names("'c64'", "'f64'"));
  for (const DTypeInfo& dtype : kDTypes)
    EXPECT_THAT(refusal([] { parse_one_dtype("c64"); }), Names(" " + std::string(dtype.name)));
  EXPECT_THAT(refusal([] { parse_ops("sum,,min"); }), Names("unknown", "''"));
  EXPECT_THAT(refusal([] { parse_alignments("32"); }), Names("known", "1", "2", "4", "8", "16"));
  EXPECT_EQ(refusal([] { parse_contexts("grahp"); }),
            "unknown launch context 'grahp' (did you mean 'graph'?); known are stream, graph, both");
  EXPECT_THAT(refusal([] { open_device("gpu0"); }), Names("no device", "name"));
  EXPECT_THAT(refusal([] { open_device("cuda:-1"); }), Names("no device", "name"));
  EXPECT_THAT(refusal([] { open_device("hots"); }), Names("'host'"));
}

}  // namespace
}  // namespace hone::tuner
