#include "tuner/explain/ncu_output.h"

#include <gmock/gmock.h>

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// In the form of ncu's raw page: progress and the program's own lines around a row of names, one of units and one for
/// each launch.
constexpr std::string_view kRaw =
    "==PROF== Connected to process 4711 (/usr/bin/hone)\n"
    "hone: \"a line of the program\", with quotes\n"
    "==PROF== Profiling \"kernel\" - 0: 0%....50%....100% - 12 passes\n"
    "==WARNING== Found outstanding GPU clock reset, trying to revert...Success\n"
    "==PROF== Disconnected from process 4711\n"
    R"csv("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",)csv"
    R"csv("Device","CC","dram__bytes_read.sum","gpu__time_duration.sum","launch__registers_per_thread",)csv"
    R"csv("sm__warps_active.avg.pct_of_peak_sustained_active")csv"
    "\n"
    R"csv("","","","","","","","","","","","byte","ns","register/thread","%")csv"
    "\n"
    R"csv("0","4711","hone","127.0.0.1","void hone::kernel<&hone::Reduce<hone::Sum<float>, 256>::second>(T1)",)csv"
    R"csv("1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","1,073,741,824","358,112","32","93.75")csv"
    "\n==WARNING== Something in between\n"
    R"csv("1","4711","hone","127.0.0.1","finish(""quoted"")","1","7","(256, 1, 1)","(1, 1, 1)","0","9.0","528",)csv"
    R"csv("2,016.50","24","n/a")csv"
    "\n"
    R"csv("2","4711","hone","127.0.0.1","cut sho)csv";

TEST(NcuOutput, TheRawPageHasARowForEachLaunch) {
  const std::vector<CountedKernel> kernels = parse_ncu(kRaw);
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_TRUE(kernels[0].name.starts_with("void hone::kernel<&hone::Reduce<hone::Sum<float>, 256>"));
  EXPECT_EQ(kernels[1].name, "finish(\"quoted\")");
  EXPECT_THAT(kernels[0].counters, SizeIs(4)) << "grid, block and CC are no counters";
  EXPECT_EQ(kernels[0].counters[0], (Counter{"dram__bytes_read.sum", "byte", 1073741824}));
  EXPECT_EQ(kernels[0].value("gpu__time_duration.sum"), 358112);
  EXPECT_EQ(kernels[1].value("gpu__time_duration.sum"), 2016.5);
  EXPECT_EQ(kernels[1].value("sm__warps_active.avg.pct_of_peak_sustained_active"), std::nullopt) << "n/a";
  EXPECT_EQ(kernels[1].value("no_such_metric"), std::nullopt);
}

TEST(NcuOutput, UnitsAreTakenBackToTheBase) {
  std::string text(kRaw);
  text.replace(text.find("\"byte\",\"ns\""), 11, "\"Mbyte\",\"usecond\"");
  text.replace(text.find("1,073,741,824\",\"358,112"), 23, "1,073.741824\",\"358.112");
  const CountedKernel kernel = parse_ncu(text).front();
  EXPECT_NEAR(*kernel.value("dram__bytes_read.sum"), 1073741824, 1e-3);
  EXPECT_NEAR(*kernel.value("gpu__time_duration.sum"), 358112, 1e-6);
}

TEST(NcuOutput, LineEndsAndMarksOfOtherSystemsDoNotMatter) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : kRaw) text.append(c == '\n' ? "\r\n" : std::string(1, c));
  EXPECT_EQ(parse_ncu(text), parse_ncu(kRaw));
}

TEST(NcuOutput, TheDetailsPageHasARowForEachMetric) {
  const std::vector<CountedKernel> kernels = parse_ncu(
      R"csv("ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"
"0","sum","Command line profiler metrics","dram__bytes_read.sum","Kbyte","1,024",""
"0","sum","Command line profiler metrics","gpu__time_duration.sum","us","2.50",""
"0","sum","SpeedOfLight","","","","SOLBottleneck"
"1","sum","Command line profiler metrics","gpu__time_duration.sum","us","3",""
)csv");
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_EQ(kernels[0].value("dram__bytes_read.sum"), 1024000);
  EXPECT_EQ(kernels[0].value("gpu__time_duration.sum"), 2500);
  EXPECT_EQ(kernels[1].value("gpu__time_duration.sum"), 3000);
}

TEST(NcuOutput, WithoutATableThereIsNoKernel) {
  for (const std::string_view text :
       {"", "==PROF== Connected\n", "==ERROR== ERR_NVGPUCTRPERM\n", "\"ID\",\"Kernel Name\",\"a__b\"\n",
        "\"ID\",\"a__b\"\n\"0\",\"1\"\n", "\"0\",\"kernel\",\"1\"\n", "\"\n", "\"ID\",\"Kernel Name\"x\n"})
    EXPECT_THAT(parse_ncu(text), IsEmpty()) << text;
}

TEST(NcuOutput, UnknownMetricsAreNamed) {
  EXPECT_THAT(unknown_metrics("==ERROR== Failed to find metric regex:^lts__t_sector_hit_rate(\\.pct)?$\n"
                              "==ERROR== Failed to find metric launch__waves_per_multiprocessor\n==PROF== x\n"),
              ElementsAre("lts__t_sector_hit_rate", "launch__waves_per_multiprocessor"));
}

}  // namespace
}  // namespace hone::tuner
