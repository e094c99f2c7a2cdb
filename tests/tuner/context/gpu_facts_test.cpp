#include "tuner/context/gpu_facts.h"

#include <gmock/gmock.h>
#include <hone/error.h>
#include <hone/sdk/known_gpus.h>

#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tests/tuner/support.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;
using test::Names;
using testing::TemporaryFolder;
using testing::write_file;

Json h100_json() { return facts_json(find_known_gpu("h100")->facts); }

DeviceFacts read(const Json& json) {
  const TemporaryFolder folder;
  write_file(folder / "facts.json", json.dump());
  return read_facts(folder / "facts.json");
}

TEST(GpuFacts, OfEveryKnownGpuAreReadAsTheyWereWritten) {
  for (const KnownGpu& gpu : known_gpus()) EXPECT_EQ(read(facts_json(gpu.facts)), gpu.facts) << gpu.name;
}

TEST(GpuFacts, LimitsOfAKnownArchitectureMayBeLeftOut) {
  const Json json{{"name", "NVIDIA H100 80GB HBM3"},
                  {"architecture", "sm_90"},
                  {"sm_count", 132},
                  {"l2_bytes", 52428800},
                  {"memory_bytes", 85018214400},
                  {"memory_clock_khz", 2619000},
                  {"memory_bus_bits", 5120}};
  EXPECT_EQ(tuning_identity(read(json)), tuning_identity(find_known_gpu("h100")->facts));
}

TEST(GpuFacts, ADeviceIsReadAsHoneDevicesListsIt) {
  const DeviceFacts facts = find_known_gpu("h100")->facts;
  const ListedDevice device{
      .name = "cuda:0", .facts = facts, .measured = {.read_gbps = 3104.2}, .compiler = "nvrtc 13.0"};
  EXPECT_EQ(read(listed_json(device)), facts);
}

TEST(GpuFacts, WhatHoneDevicesPrintsIsReadByOtherCommands) {
  const TemporaryFolder folder;
  const testing::CommandRun devices = testing::run_hone({"devices", "--known", "--json"});
  ASSERT_EQ(devices.code, 0) << devices.err;
  write_file(folder / "gpu.json", Json::parse(devices.out).at("gpus").at(0).dump());
  const testing::CommandRun run = testing::run_hone({"occupancy", "--gpu", (folder / "gpu.json").string(), "--block",
                                                     "256", "--registers", "32"});
  EXPECT_EQ(run.code, 0) << run.err;
}

struct Impossible {
  const char* field;
  Json value;
  std::vector<std::string> named;

  friend void PrintTo(const Impossible& impossible, std::ostream* out) {
    *out << impossible.field << " = " << impossible.value.dump();
  }
};

class ImpossibleFacts : public ::testing::TestWithParam<Impossible> {};

TEST_P(ImpossibleFacts, AreRefusedByName) {
  Json json = h100_json();
  if (GetParam().value.is_null())
    json.erase(GetParam().field);
  else
    json[GetParam().field] = GetParam().value;
  try {
    read(json);
    FAIL() << "no GPU has that";
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("facts.json"));
    for (const std::string& part : GetParam().named) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ImpossibleFacts,
    ::testing::Values(Impossible{"sm_count", 0, {"sm_count = 0", "1 … 4096"}},
                      Impossible{"sm_count", -132, {"sm_count = -132"}},
                      Impossible{"sm_count", 1.5, {"sm_count = 1.5", "no whole number"}},
                      Impossible{"sm_count", 1e9, {"sm_count", "1 … 4096"}},
                      Impossible{"sm_count", 1e300, {"sm_count", "1 … 4096"}},
                      Impossible{"name", "", {"'name'", "empty"}},
                      Impossible{"sm_count", "132", {"sm_count", "no whole number"}},
                      Impossible{"sm_count", 18446744073709551615U, {"sm_count = 18446744073709551615"}},
                      Impossible{"sm_count", nullptr, {"no 'sm_count'"}},
                      Impossible{"warp_threads", 64, {"warp_threads = 64", "32 … 32"}},
                      Impossible{"max_threads_per_sm", 2000, {"no multiple of a warp"}},
                      Impossible{"max_threads_per_sm", 512, {"max_threads_per_block = 1024 above"}},
                      Impossible{"registers_per_block", 131072, {"registers_per_block", "registers_per_sm"}},
                      Impossible{"smem_bytes_per_block_optin", 1 << 20, {"smem_bytes_per_block_optin"}},
                      Impossible{"memory_clock_khz", 0, {"memory_clock_khz = 0"}},
                      Impossible{"compute_capability", 80, {"'sm_90'", "sm_80"}},
                      Impossible{"architecture", "sm_80", {"'sm_80'", "sm_90"}},
                      Impossible{"architecture", nullptr, {"no 'architecture'"}}, Impossible{"name", 7, {"name"}},
                      Impossible{"kind", "host", {"'host'"}},
                      Impossible{"sm_cuont", 132, {"'sm_cuont'", "did you mean 'sm_count'?"}},
                      Impossible{"max_grid_blocks", Json::array({1, 2}), {"max_grid_blocks"}},
                      Impossible{"has_dependent_launch", 1, {"has_dependent_launch"}}));

TEST(GpuFacts, OfAnUnknownArchitectureMustBeComplete) {
  Json json = h100_json();
  json["architecture"] = "sm_91";
  json["compute_capability"] = 91;
  EXPECT_EQ(read(json).architecture, "sm_91");
  json.erase("max_blocks_per_sm");
  try {
    read(json);
    FAIL() << "the limits of sm_91 are not known";
  } catch (const CommandError& error) {
    EXPECT_THAT(error.what(), Names("sm_91", "max_blocks_per_sm", "sm_90"));
  }
}

TEST(GpuFacts, FilesThatAreNoObjectAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_facts(folder / "missing.json"), Error);
  write_file(folder / "text.json", "sm_count 132");
  EXPECT_THROW(read_facts(folder / "text.json"), CommandError);
  write_file(folder / "list.json", "[]");
  EXPECT_THROW(read_facts(folder / "list.json"), CommandError);
}

TEST(ChooseGpu, UnknownNamesAreListedWithTheKnownOnes) {
  try {
    choose_gpu("h1000");
    FAIL() << "there is no h1000";
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), Names("h1000", "did you mean 'h100'?", "b200", ".json"));
  }
}

}  // namespace
}  // namespace hone::tuner
