// hone occupancy, in-process: the textbook's examples, numbers, files, and what is refused.
#include <gmock/gmock.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/sdk/known_gpus.h>
#include <hone/session.h>
#include <hone/tunable_kernel.h>
#include <hone/tuned_reduce.h>

#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using test::Names;
using testing::CommandRun;
using testing::isolated_environment;
using testing::run_hone;
using testing::TemporaryFolder;
using testing::write_file;

bool has_nvrtc() { return !make_absent_gpu(find_known_gpu("h100")->facts)->compiler_identity().empty(); }

json occupancy(std::vector<std::string> args) {
  args.insert(args.begin(), "occupancy");
  args.push_back("--json");
  const CommandRun run = run_hone(args);
  EXPECT_EQ(run.code, 0) << run.err;
  return json::parse(run.out);
}

// Kirk and Hwu, "Programming Massively Parallel Processors": an SM with room for 1536 threads and 8 blocks.
TEST(OccupancyCommand, TilesOfTheTextbook) {
  const auto tile = [](const char* block) {
    return occupancy({"--gpu", "rtx3090", "--sm-blocks", "8", "--block", block});
  };
  EXPECT_EQ(tile("8x8").at("resident_blocks"), 8);
  EXPECT_EQ(tile("8x8").at("limited_by"), "blocks");
  EXPECT_NEAR(tile("8x8").at("occupancy").get<double>(), 1.0 / 3, 1e-9);
  EXPECT_EQ(tile("16x16").at("resident_blocks"), 6);
  EXPECT_NEAR(tile("16x16").at("occupancy").get<double>(), 1, 1e-9);
  EXPECT_EQ(tile("32x32").at("resident_blocks"), 1);
  EXPECT_NEAR(tile("32x32").at("occupancy").get<double>(), 2.0 / 3, 1e-9);
}

TEST(OccupancyCommand, TheTailOf1024BlocksOn82Sms) {
  const json waves = occupancy({"--gpu", "rtx3090", "--block", "256", "--grid", "1024"}).at("waves");
  EXPECT_EQ(waves.at("slots"), 492);
  EXPECT_EQ(waves.at("waves"), 3);
  EXPECT_EQ(waves.at("last_blocks"), 40);
}

TEST(OccupancyCommand, RegistersAndBlockSizes) {
  const json report = occupancy({"--gpu", "h100", "--block", "256", "--registers", "40", "--size", "2^24",
                                 "--per-thread", "16", "--in-flight", "64"});
  EXPECT_EQ(report.at("resident_blocks"), 6);
  EXPECT_EQ(report.at("limited_by"), "registers");
  EXPECT_EQ(report.at("room_for").at("threads"), 8);
  EXPECT_EQ(report.at("one_register_less").at("resident_blocks"), 6);
  EXPECT_EQ(report.at("one_register_more").at("resident_blocks"), 5);
  EXPECT_EQ(report.at("more_blocks_with").at("registers"), 32);
  EXPECT_EQ(report.at("fewer_blocks_with").at("registers"), 41);
  EXPECT_EQ(report.at("waves").at("grid_blocks"), 4096);
  EXPECT_EQ(report.at("bytes_in_flight_per_sm"), 6 * 256 * 64);
  EXPECT_EQ(report.at("max_potential_block").at("threads"), 768);
}

TEST(OccupancyCommand, SaysItInWords) {
  const CommandRun run = run_hone({"occupancy", "--gpu", "rtx3090", "--block", "256", "--grid", "1024"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, Names("NVIDIA GeForce RTX 3090", "82 SMs", "6 blocks", "492", "40 blocks",
                             "cudaOccupancyMaxPotentialBlockSize()", "Little's law"));
}

TEST(OccupancyCommand, RegistersThatAreNotGivenAreNoNumber) {
  const CommandRun run = run_hone({"occupancy", "--gpu", "h100", "--block", "256"});
  EXPECT_THAT(run.out, Names("256 threads", "any number of registers"));
  EXPECT_THAT(run.out, ::testing::Not(::testing::HasSubstr("0 registers a thread")));
  EXPECT_TRUE(occupancy({"--gpu", "h100", "--block", "256"}).at("registers").is_null());
}

TEST(OccupancyCommand, SharedMemoryTakesUnits) {
  EXPECT_EQ(occupancy({"--gpu", "h100", "--block", "256", "--smem", "16Ki"}).at("dynamic_smem_bytes"), 16384);
  const CommandRun huge = run_hone({"occupancy", "--gpu", "h100", "--block", "256", "--smem", "4Gi"});
  EXPECT_EQ(huge.code, 2);
  EXPECT_THAT(huge.err, Names("--smem", "4 GiB"));
  EXPECT_THAT(run_hone({"occupancy", "--gpu", "h100", "--smem", "much"}).err, Names("--smem", "'much'"));
}

TEST(OccupancyCommand, SharedMemoryThatFitsNowhereIsSaid) {
  const CommandRun run = run_hone({"occupancy", "--gpu", "t4", "--smem", "70000"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("Tesla T4", "70000", "65536"));
  EXPECT_EQ(occupancy({"--gpu", "t4", "--smem", "70000", "--block", "32"}).at("resident_blocks"), 0);
}

TEST(OccupancyCommand, AKernelIsCompiledForTheGpu) {
  if (!has_nvrtc()) GTEST_SKIP() << "there is no NVRTC";
  const TemporaryFolder folder;
  write_file(folder / "k.cu",
             "__global__ void __launch_bounds__(128) k(float* p) { __shared__ float s[1024]; s[threadIdx.x] = *p; "
             "__syncthreads(); *p = s[0]; }\n");
  const json report = occupancy({(folder / "k.cu").string(), "--gpu", "b200"});
  EXPECT_EQ(report.at("block_threads"), 128);
  EXPECT_EQ(report.at("static_smem_bytes"), 4096);
  EXPECT_GT(report.at("registers"), 0);
}

// A winner of an H100 that is not there, looked at there and on a GPU of another architecture.
TEST(OccupancyCommand, AWinnerIsLookedAtOnAnyGpu) {
  if (!has_nvrtc()) GTEST_SKIP() << "there is no NVRTC";
  const TemporaryFolder folder;
  const auto cache = folder / "cache.sqlite";
  {
    Session session(make_absent_gpu(find_known_gpu("h100")->facts),
                    {.on_miss = MissPolicy::heuristic, .cache_path = cache, .capture_workspaces = 0});
    session.prepare({.family = &reduce_family(), .operation = 0, .extents = {1 << 20, 1, 1}});
  }
  const json own = occupancy({"1", "--cache", cache.string()});
  EXPECT_EQ(own.at("gpu").at("name"), "NVIDIA H100 80GB HBM3");
  EXPECT_GT(own.at("bytes_in_flight_per_sm"), 0);
  EXPECT_GT(own.at("waves").at("grid_blocks"), 0);
  const json other = occupancy({"1", "--cache", cache.string(), "--gpu", "t4"});
  EXPECT_EQ(other.at("gpu").at("architecture"), "sm_75");
  EXPECT_EQ(other.at("block_threads"), own.at("block_threads"));
  EXPECT_GT(other.at("registers"), 0);
  EXPECT_EQ(run_hone({"occupancy", "7", "--gpu", "t4", "--cache", cache.string()}).code, 2);
}

TEST(OccupancyCommand, TheNumbersThatAreAdvisedAreThoseThatAreTaken) {
  const TemporaryFolder folder;
  const auto cache = folder / "cache.sqlite";
  const TunableKernel own({.source = "extern \"C\" __global__ void own(int* x, int n) {\n"
                                     "  const int i = blockIdx.x * block_threads + threadIdx.x;\n"
                                     "  if (i < n) x[i] = i;\n}\n",
                           .parameters = {ordinal("block_threads", {96})},
                           .arguments = {out<std::int32_t>("x"), extent<int>("n")}});
  {
    Session session(Device::open("host"), {.on_miss = MissPolicy::heuristic, .cache_path = cache});
    session.prepare(own.problem(1000));
  }
  const CommandRun run = run_hone({"occupancy", "1", "--gpu", "t4", "--cache", cache.string()});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, Names("'own'", "--block 96 --smem 0"));
  EXPECT_EQ(run_hone({"occupancy", "--gpu", "t4", "--block", "96", "--smem", "0"}).code, 0);
}

}  // namespace
}  // namespace hone::tuner
