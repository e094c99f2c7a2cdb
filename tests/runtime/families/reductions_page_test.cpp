// docs/reductions.md shows the tables of <hone/reduce_op.h>.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include <hone/reduce_op.h>

#include "tests/support/names.h"

namespace hone {
namespace {

using testing::HasSubstr;
using test::Names;

std::string table(const std::function<DType(ReduceOp, DType)>& dtype_of) {
  std::string text = "| operation |";
  for (const DTypeInfo& dtype : kDTypes) text += fmt::format(" {} |", dtype.name);
  text += "\n| --- |";
  for (std::size_t i = 0; i < kDTypes.size(); ++i) text += " --- |";
  for (const ReduceOpInfo& op : kReduceOps) {
    text += fmt::format("\n| `{}` |", op.name);
    for (const DTypeInfo& dtype : kDTypes)
      text += fmt::format(" {} |", reduce_supports(op.op, dtype.dtype) ? info(dtype_of(op.op, dtype.dtype)).name : "–");
  }
  return text + "\n";
}

class ReductionsPage : public testing::Test {
 protected:
  static std::string page() {
    std::ifstream in(HONE_DOCS_FOLDER "/reductions.md");
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(ReductionsPage, HasTheTableOfAccumulators) { EXPECT_THAT(page(), HasSubstr(table(reduce_accumulator_dtype))); }

TEST_F(ReductionsPage, HasTheTableOfResults) {
  EXPECT_THAT(page(), HasSubstr(table([](ReduceOp op, DType in) { return reduce_result_dtype(op, in); })));
}

TEST_F(ReductionsPage, NamesEveryOperation) {
  const std::string operations = page().substr(0, page().find("## Accumulators"));
  for (const ReduceOpInfo& op : kReduceOps) EXPECT_THAT(operations, Names(fmt::format("`{}`", op.name)));
}

}  // namespace
}  // namespace hone
