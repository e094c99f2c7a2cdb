#include <hone/sdk/known_gpus.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

TEST(KnownGpus, HaveDifferentNamesAndSources) {
  std::set<std::string_view> names, driver_names;
  for (const KnownGpu& gpu : known_gpus()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    EXPECT_TRUE(driver_names.insert(gpu.facts.name).second) << gpu.name;
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
  }
  for (const char* name :
       {"t4", "a100", "a10", "rtx3090", "rtx4090", "l40s", "h100", "h200", "gh200", "b200", "rtx5090", "orin"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(KnownGpus, HaveTheLimitsOfTheirArchitecture) {
  for (const KnownGpu& gpu : known_gpus()) {
    const std::optional<DeviceFacts> architecture = architecture_facts(gpu.facts.architecture);
    ASSERT_TRUE(architecture) << gpu.name;
    DeviceFacts facts = *architecture;
    facts.name = gpu.facts.name;
    facts.sm_count = gpu.facts.sm_count;
    facts.sm_clock_khz = gpu.facts.sm_clock_khz;
    facts.memory_clock_khz = gpu.facts.memory_clock_khz;
    facts.memory_bus_bits = gpu.facts.memory_bus_bits;
    facts.l2_bytes = gpu.facts.l2_bytes;
    facts.memory_bytes = gpu.facts.memory_bytes;
    EXPECT_EQ(facts, gpu.facts) << gpu.name;
  }
}

struct DataSheet {
  const char* gpu;
  double gbps;
};

TEST(KnownGpus, HaveTheBandwidthOfTheirDataSheets) {
  for (const DataSheet& sheet : {DataSheet{"t4", 320},
                                 {"a100", 1555},
                                 {"a100-80gb", 2039},
                                 {"a10", 600},
                                 {"rtx3090", 936},
                                 {"rtx4090", 1008},
                                 {"l40s", 864},
                                 {"h100", 3350},
                                 {"h200", 4900},
                                 {"gh200", 4000},
                                 {"b200", 7700},
                                 {"rtx5090", 1792},
                                 {"orin", 204.8}})
    EXPECT_NEAR(peak_bandwidth_gbps(find_known_gpu(sheet.gpu)->facts) / sheet.gbps, 1, 0.01) << sheet.gpu;
}

TEST(KnownGpus, TheH100IsWhatTheDriverReports) {
  DeviceFacts facts = h100_facts();
  const DeviceFacts& known = find_known_gpu("h100")->facts;
  EXPECT_EQ(tuning_identity(known), tuning_identity(facts));
}

TEST(KnownGpus, AreFoundByBothNamesInAnyCase) {
  EXPECT_EQ(find_known_gpu("H100"), find_known_gpu("nvidia h100 80gb hbm3"));
  EXPECT_EQ(find_known_gpu("h10"), nullptr);
  EXPECT_EQ(find_known_gpu(""), nullptr);
}

TEST(ArchitectureFacts, SuffixesOfFeaturesChangeNoLimit) {
  DeviceFacts facts = *architecture_facts("sm_90");
  EXPECT_EQ(facts.smem_bytes_per_block_optin, 227 * 1024);
  facts.architecture = "sm_90a";
  EXPECT_EQ(architecture_facts("sm_90a"), facts);
  for (const char* unknown : {"sm_91", "sm_", "sm_9x", "90", "compute_90", ""})
    EXPECT_FALSE(architecture_facts(unknown)) << unknown;
}

}  // namespace
}  // namespace hone
