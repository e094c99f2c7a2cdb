// Reproducible softmax of rows as a description: its policies, what of a row they hold and launch, and its bits.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hone/sdk/stored_policy.h>

#include "runtime/families/softmax/canonical_softmax.h"
#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/softmax/softmax_reference.h"
#include "runtime/families/softmax/softmax_row_layout.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/expected_softmax_bits.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

Problem reproducible_rows(std::int64_t rows, std::int64_t columns, DType dtype = DType::f16) {
  return softmax_problem({.dtype = dtype, .numerics = Numerics::reproducible}, SoftmaxShape::rows(rows, columns));
}

/// One block a row leaves an H100 idle: reproducible softmax of few long rows was 25 times as slow as the fast one.
TEST(CanonicalSoftmax, FewLongRowsAreSharedByManyBlocksInReproducibleNumerics) {
  const auto scopes = [](const Problem& problem) {
    std::set<Scope> found;
    for (const Policy& policy : allowed_policies(problem, h100_facts()))
      found.insert(policy.as<SoftmaxRowPolicy>().scope);
    return found;
  };
  EXPECT_EQ(scopes(reproducible_rows(4, 1 << 24, DType::f32)), std::set{Scope::grid});
  EXPECT_EQ(scopes(reproducible_rows(1, 1 << 26, DType::f32)), std::set{Scope::grid});
  EXPECT_TRUE(scopes(reproducible_rows(1 << 10, 1 << 16, DType::f32)).contains(Scope::cluster));
  EXPECT_TRUE(scopes(reproducible_rows(1 << 13, 1 << 13, DType::f32)).contains(Scope::block));
  EXPECT_TRUE(scopes(reproducible_rows(1 << 16, 1 << 10)).contains(Scope::warp)) << "a warp holds two chunks";

  const Problem problem = reproducible_rows(4, 1 << 24, DType::f32);
  const Candidate candidate{allowed_policies(problem, h100_facts()).front(), {264}};
  LaunchList launches;
  const std::array<void*, 2> buffers{};
  problem.family->encode(problem, candidate, buffers, nullptr, launches);
  EXPECT_EQ(launches.end() - launches.begin(), 2);
  for (const Launch& launch : launches) EXPECT_EQ(launch.grid.x, 264u);
}

/// 16384 rows of 6000 f16 took an H200 113 µs with eight warps a block, of which two had nothing to do.
TEST(CanonicalSoftmax, ReproducibleRowsAreLaunchedWithTheWarpsAndBlocksThatHaveAPart) {
  struct Launched {
    std::string_view policy;
    std::int64_t columns;
    unsigned threads, blocks;
  };
  for (const auto& [text, columns, threads, blocks] : {
           Launched{"scope=block block_threads=256 staging=direct packs_per_thread=4", 4097, 160, 1},
           {"scope=block block_threads=256 staging=direct packs_per_thread=4", 5120, 160, 1},
           {"scope=block block_threads=256 staging=direct packs_per_thread=4", 5121, 192, 1},
           {"scope=block block_threads=128 staging=direct packs_per_thread=8", 5001, 96, 1},
           {"scope=block block_threads=128 staging=shared smem_kib=48", 5001, 96, 1},
           {"scope=block block_threads=256 staging=ring smem_kib=48", 5001, 160, 1},
           {"scope=cluster cluster_blocks=8 block_threads=128 staging=direct packs_per_thread=8", 50304, 128, 7},
           {"scope=cluster cluster_blocks=8 block_threads=256 staging=shared smem_kib=112", 40000, 256, 5},
           {"scope=cluster cluster_blocks=8 block_threads=128 staging=direct packs_per_thread=8", 65536, 128, 8},
           {"scope=cluster cluster_blocks=4 block_threads=1024 staging=ring smem_kib=224", 50304, 800, 2},
           {"scope=cluster cluster_blocks=8 block_threads=512 staging=ring smem_kib=112", 70000, 448, 5},
       }) {
    SCOPED_TRACE(fmt::format("{} columns, {}", columns, text));
    const Problem problem = reproducible_rows(40, columns);
    const std::optional<Policy> policy = problem.family->space().parse(fmt::format("{} min_blocks=unset", text));
    ASSERT_TRUE(policy);
    const WorkShape shape = problem.family->shape(problem, *policy);
    EXPECT_EQ(shape.block_threads, static_cast<int>(threads));
    EXPECT_EQ(shape.cluster_blocks, static_cast<int>(blocks));
    EXPECT_EQ(shape.tiles, 40 * blocks);
    LaunchList launches;
    const std::array<void*, 2> buffers{};
    problem.family->encode(problem, {*policy, {30}}, buffers, nullptr, launches);
    ASSERT_EQ(launches.end() - launches.begin(), 1);
    EXPECT_EQ(launches.begin()->block.x, threads);
    EXPECT_EQ(launches.begin()->cluster_blocks, blocks);
    EXPECT_EQ(launches.begin()->grid.x, 30 / blocks * blocks);
  }
}

/// A row of 46 chunks needs 12 warps, four chunks each, and one of 32 needs 16; and warps exchange their sums.
TEST(CanonicalSoftmax, EveryReproducibleRowOfAClassHasSharedMemory) {
  DeviceFacts facts = h100_facts();
  facts.smem_bytes_per_block_optin = 48 * 1024;
  const auto reason = [&](std::int64_t columns, std::string_view text) {
    const Problem problem = reproducible_rows(4, columns);
    const Policy policy = problem.family->space().parse(fmt::format("{} min_blocks=unset", text)).value();
    return problem.family->is_valid(problem, policy, facts).text();
  };
  EXPECT_EQ(reason(16384, "scope=block block_threads=256 staging=direct packs_per_thread=8"), "");
  EXPECT_THAT(reason(32768, "scope=block block_threads=512 staging=direct packs_per_thread=8"),
              Names("65824 bytes", "49152"));
  constexpr std::string_view kShared = "scope=block block_threads=128 staging=shared smem_kib=48";
  EXPECT_EQ(reason(4096, kShared), "");
  EXPECT_THAT(reason(8192, kShared), Names("shared memory", "49152"));
}

/// Winners serve all lengths of a class, and the cache has the launch of the one that was measured.
TEST(CanonicalSoftmax, AWinnerMayHaveBeenMeasuredWithOtherBlocks) {
  const Problem problem = reproducible_rows(4096, 5001);
  const auto is_known = [&](int block_threads) {
    constexpr std::string_view kPolicy =
        "scope=block block_threads=256 staging=direct packs_per_thread=4 min_blocks=unset";
    return stored_policy(problem, kPolicy, block_threads, 132, nullptr).has_value();
  };
  for (const int block_threads : {32, 160, 192, 256}) EXPECT_TRUE(is_known(block_threads)) << block_threads;
  for (const int block_threads : {0, -32, 288}) EXPECT_FALSE(is_known(block_threads)) << block_threads;
}

/// Three blocks of 320 threads are resident, and four of 256.
TEST(CanonicalSoftmax, AGridHasAsManyWavesForRowsOfAnotherLength) {
  const auto grid_of = [](std::int64_t rows, std::int64_t columns, const Geometry& geometry) {
    const Problem problem = reproducible_rows(rows, columns);
    const Policy policy = problem.family->space()
                              .parse("scope=block block_threads=512 staging=direct packs_per_thread=4 min_blocks=unset")
                              .value();
    LaunchList launches;
    const std::array<void*, 2> buffers{};
    problem.family->encode(problem, {policy, geometry}, buffers, nullptr, launches);
    return launches.begin()->grid.x;
  };
  const Geometry waves{.max_blocks = 1188, .block_threads = 320};
  EXPECT_EQ(grid_of(10000, 10000, waves), 1188u);
  EXPECT_EQ(grid_of(10000, 8192, waves), 1584u);
  EXPECT_EQ(grid_of(10000, 11500, waves), 792u);
  EXPECT_EQ(grid_of(1188, 11500, waves), 1188u);
  EXPECT_EQ(grid_of(10000, 10000, {.max_blocks = 132, .block_threads = 320}), 132u);
  EXPECT_EQ(grid_of(10000, 8192, {.max_blocks = 1188}), 1188u);
  EXPECT_EQ(grid_of(10000, 8192, {.max_blocks = Geometry::kMostBlocks, .block_threads = 320}), 10000u);
}

/// 8 warps hold rows of 8192 elements, but not the others of their class.
TEST(CanonicalSoftmax, RegistersHoldEveryReproducibleRowOfAClass) {
  const Problem problem = reproducible_rows(8192, 8192);
  const auto reason = [&](int block_threads) {
    const std::string text =
        fmt::format("scope=block block_threads={} staging=direct packs_per_thread=4 min_blocks=unset", block_threads);
    return problem.family->prune(problem, problem.family->space().parse(text).value(), h100_facts()).text();
  };
  EXPECT_THAT(reason(256), Names("the longest one", "registers"));
  EXPECT_EQ(reason(512), "");
}

/// The file was written by a second program, expected_bits.py softmax, which shares nothing with the library.
TEST(CanonicalSoftmax, IsDefinedWithTheExpectedBits) {
  for (const ExpectedSoftmaxBits& expected : read_expected_softmax_bits()) {
    const softmax_reference::Computation computation{.dtype = expected.spec.dtype,
                                                     .result = expected.spec.result_dtype(),
                                                     .accumulator = expected.spec.accumulator_dtype(),
                                                     .is_log = expected.is_log};
    std::vector<ElementRange> parts;
    for (const std::int64_t i : expected.places()) parts.push_back({i, 1});
    const auto line_of = [&](std::int64_t) { return softmax_reference::Line{.elements = expected.n}; };
    EXPECT_EQ(canonical::verify_softmax(computation, softmax_factor(expected.spec), expected.elements(), parts, line_of,
                                        expected.results), "")
        << (expected.is_log ? "log_softmax " : "softmax ") << info(expected.spec.dtype).name << " to "
        << info(expected.spec.result_dtype()).name << ", " << expected.n << " elements, scale " << expected.spec.scale;
  }
}

}  // namespace
}  // namespace hone
