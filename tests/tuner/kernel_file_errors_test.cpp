// Errors of kernel files name file, line and column.
#include <gmock/gmock.h>

#include <string>
#include <string_view>

#include "tests/support/names.h"
#include "tests/tuner/kernel_file_fixture.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using testing::KernelFile;
using testing::kKernel;
using testing::kSource;
using test::Names;
using testing::replaced;
using ::testing::StartsWith;
using testing::write_file;

class KernelFileErrors : public KernelFile {
 protected:
  /// The complaint of hone check about a kernel file, without the folder's name.
  std::string complaint(std::string_view name, const std::string& kernel, std::string_view source = kSource) {
    write_file(folder_ / "axpy.cu", source);
    write_file(folder_ / name, kernel);
    const CommandRun run = hone({"check", path(name)});
    EXPECT_EQ(run.code, 4) << run.out;
    const std::size_t at = run.err.find(name);
    return at == std::string::npos ? run.err : run.err.substr(at);
  }
};

TEST_F(KernelFileErrors, NameFileLineAndColumn) {
  EXPECT_THAT(complaint("a.json", replaced(kKernel, "\"unroll\": [1, 2]", "\"unroll\": [1, 2], \"pad\": [1]")),
              StartsWith("a.json:3:64: the kernel 'axpy' has the parameter pad, which its source does not use"));
  EXPECT_THAT(
      complaint("b.json", replaced(kKernel, "threads * unroll", "threads * unrol")),
      StartsWith("b.json:4:13: the kernel 'axpy': where 'block_threads * unrol <= 256', column 17: 'unrol' is"));
  EXPECT_THAT(complaint("c.json", replaced(kKernel, "\"where\"", "\"were\"")),
              StartsWith("c.json:4:3: a kernel has no field 'were' (did you mean 'where'?)"));
  EXPECT_THAT(complaint("d.json", replaced(kKernel, "\"x\", \"type\": \"f32\"", "\"x\", \"type\": \"f33\"")),
              StartsWith("d.json:8:25: unknown dtype 'f33'"));
  EXPECT_THAT(complaint("e.json", replaced(kKernel, "axpy.cu", "nothing.cu")), StartsWith("e.json:2:11: "));
  EXPECT_THAT(complaint("f.json", replaced(kKernel, "{\"in\": \"x\"", "{\"elements\": 3")),
              StartsWith("f.json:8:5: an argument has one of in, out, inout, scalar, extent"));
  EXPECT_THAT(complaint("g.json", replaced(kKernel, "[64, 128]", "[64, 64]")),
              ::testing::AllOf(StartsWith("g.json:3:18: "), Names("64", "twice", "block_threads")));
  EXPECT_THAT(complaint("h.json", replaced(kKernel, "\"x\"", "\"y\"")),
              ::testing::AllOf(StartsWith("h.json:8:12: "), Names("'y'", "twice")));
  EXPECT_THAT(complaint("i.json", replaced(kKernel, "\"in\": \"x\"", "\"in\": \"x\", \"value\": 3")),
              ::testing::AllOf(StartsWith("i.json:8:17: "), Names("'value'", "scalars", "'x'")));
  EXPECT_THAT(complaint("j.json", replaced(kKernel, "\"in\": \"x\"", "\"in\": \"x\", \"indices_below\": \"n\"")),
              Names("j.json", "indices_below", "'x'", "f32"));
  EXPECT_THAT(complaint("k.json", replaced(kKernel, "\"type\": \"i32\"", "\"type\": 32")),
              StartsWith("k.json:10:29: 'type' is a number"));
  EXPECT_THAT(complaint("l.json", replaced(kKernel, "thread\": \"unroll\"", "thread\": \"0 * unroll\"")),
              ::testing::AllOf(StartsWith("l.json:5:26: "), Names("elements_per_thread", "0 * unroll", "is 0")));
  EXPECT_THAT(complaint("m.json", replaced(kKernel, "\"unroll\": [1, 2]", "\"unroll\": [1, \"two\"]")),
              ::testing::AllOf(StartsWith("m.json:4:13: "), Names("block_threads * unroll", "names", "compared")));
  EXPECT_THAT(complaint("n.json", R"({"file": "axpy.cu", "extents": ["n"], "arguments": 3})"),
              ::testing::AllOf(StartsWith("n.json:1:"), Names("'arguments' is a number", "a list of tables")));
  EXPECT_THAT(complaint("o.json", replaced(kKernel, "\"file\": \"axpy.cu\"",
                                           "\"source\": \"__global__ void other() {}\", \"entry\": \"nope\"")),
              Names("o.json", "the kernel 'nope'", "it has other"));
  EXPECT_THAT(complaint("p.json", replaced(kKernel, "block_threads * unroll <= 256", "block_threads / 0 > 1")),
              ::testing::AllOf(StartsWith("p.json:4:13: "), Names("where", "divides by zero", "block_threads=64")));
}

}  // namespace
}  // namespace hone::tuner
