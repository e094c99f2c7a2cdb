#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "runtime/families/reduce_axis/axis_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include <hone/fused_reduction.h>
#include <hone/tuned_reduce.h>

#include "tests/runtime/families/support.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using test::Names;
using testing::Not;

using Finish = ReducePolicy::Finish;

const KernelFamily& family() { return reduce_family(); }

Problem sum_f32(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }

Policy policy(Finish finish, std::int32_t threads = 256, std::int32_t unroll = 2) {
  return Policy::of(ReducePolicy{.block_threads = threads,
                                 .unroll = unroll,
                                 .finish = finish,
                                 .cluster_blocks = finish == Finish::cluster ? 8 : 1});
}

struct Encoded {
  std::vector<Launch> launches;

  const ReduceArguments& arguments(std::size_t launch) const {
    return *static_cast<const ReduceArguments*>(launches[launch].arguments.value(0));
  }
};

void* const kIn = reinterpret_cast<void*>(0x1000);
void* const kOut = reinterpret_cast<void*>(0x2000);
void* const kWorkspace = reinterpret_cast<void*>(0x3000);

Encoded encode(const Problem& problem, const Policy& policy, std::int64_t max_blocks) {
  const std::array<void*, 2> buffers{kIn, kOut};
  LaunchList list;
  family().encode(problem, {policy, {max_blocks}}, buffers, kWorkspace, list);
  return {{list.begin(), list.end()}};
}

TEST(ReduceProblem, DistinguishesOnlyWhetherThereIsAHeadToPeel) {
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    const auto element = static_cast<std::uint32_t>(info(dtype).size_bytes);
    EXPECT_EQ(reduce_problem(ReduceOp::sum, dtype, 1, 16).alignment, 16u);
    EXPECT_EQ(reduce_problem(ReduceOp::sum, dtype, 1, 8).alignment, element);
    EXPECT_EQ(reduce_problem(ReduceOp::sum, dtype, 1, element).alignment, element);
  }
}

TEST(ReduceFamily, AcceptsEverySizeThatMemoryCanHold) {
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 31, std::int64_t{1} << 40})
    EXPECT_EQ(family().refuse(sum_f32(n)), "") << n;
}

TEST(ReduceFamily, RefusesNegativeAndAbsurdSizes) {
  EXPECT_THAT(family().refuse(sum_f32(-1)), Names("negative"));
  EXPECT_THAT(family().refuse(sum_f32(std::numeric_limits<std::int64_t>::min())), Names("negative"));
  EXPECT_THAT(family().refuse(sum_f32(kLargest)), Names("no memory"));
  EXPECT_THAT(family().refuse(reduce_problem(ReduceOp::sum, DType::f64, kLargest / 4)), Names("no memory"));
}

TEST(ReduceFamily, TheLargestAcceptedSizeOverflowsNowhere) {
  for (DType dtype : {DType::f32, DType::i64}) {
    std::int64_t most = 0;
    for (std::int64_t step = std::int64_t{1} << 62; step > 0; step /= 2)
      if (family().refuse(reduce_problem(ReduceOp::sum, dtype, most + step)).empty()) most += step;
    const Problem problem = reduce_problem(ReduceOp::sum, dtype, most);
    EXPECT_GT(family().bytes_moved(problem), most);
    const WorkShape shape = family().shape(problem, policy(Finish::last_block));
    EXPECT_GE(shape.tiles, most / 2048);
  }
}

TEST(ReduceFamily, RefusesUnknownOperations) {
  Problem problem = sum_f32(1);
  problem.operation = kReduceOps.size();
  EXPECT_THAT(family().refuse(problem), Names("no operation " + std::to_string(kReduceOps.size())));
}

TEST(ReduceFamily, RefusesDTypesThatDoNotGoWithTheOperation) {
  const auto refusal = [](const ReduceSpec& spec) { return family().refuse(reduce_problem(spec, 5)); };
  EXPECT_THAT(refusal({.op = ReduceOp::logsumexp, .dtype = DType::u8}), Names("takes", "f16", "bf16", "f32", "f64"));
  EXPECT_THAT(refusal({.accumulator = DType::i64}), Names("cannot be accumulated", "i64", "choice", "f32"));
  EXPECT_THAT(refusal({.op = ReduceOp::argmin, .result = DType::i32}), Names("cannot be stored", "i32"));
  EXPECT_EQ(refusal({.dtype = DType::i8, .accumulator = DType::u64, .result = DType::i16}), "");
}

TEST(ReduceFamily, OnlySomeOperationsNeedElements) {
  for (const ReduceOpInfo& op : kReduceOps) {
    const std::string refusal = family().refuse(reduce_problem(op.op, DType::f32, 0));
    const bool is_index = op.op == ReduceOp::argmin || op.op == ReduceOp::argmax;
    EXPECT_EQ(!refusal.empty(), is_index) << op.name << refusal;
  }
}

TEST(ReduceFamily, RejectsClustersThatTheDeviceCannotHave) {
  DeviceFacts facts;
  facts.max_cluster_blocks = 1;
  EXPECT_EQ(reason_to_skip(sum_f32(100), policy(Finish::cluster), facts),
            Reason(ReasonCode::cluster_too_large, {8, 1}));
  facts.max_cluster_blocks = 8;
  EXPECT_EQ(reason_to_skip(sum_f32(100), policy(Finish::cluster), facts), "");
}

TEST(ReduceFamily, RejectsBlocksThatTheDeviceCannotHave) {
  DeviceFacts facts;
  facts.max_threads_per_block = 512;
  EXPECT_EQ(reason_to_skip(sum_f32(100), policy(Finish::one_block, 512), facts), "");
  EXPECT_EQ(reason_to_skip(sum_f32(100), policy(Finish::one_block, 1024), facts),
            Reason(ReasonCode::too_many_threads, {1024, 512}));
}

TEST(ReduceFamily, ShapeCountsTilesAndBytesInFlight) {
  const WorkShape shape = family().shape(sum_f32(4097), policy(Finish::last_block, 256, 2));
  EXPECT_EQ(shape.block_threads, 256);
  EXPECT_EQ(shape.bytes_in_flight_per_block, 256 * 16 * 2);
  EXPECT_EQ(shape.tiles, 3);  // of 2048 elements
  EXPECT_EQ(family().shape(sum_f32(4096), policy(Finish::last_block, 256, 2)).tiles, 2);
}

TEST(ReduceFamily, WarpsThatNoChunkIsLeftForLoadNothing) {
  const ReduceSpec spec{.op = ReduceOp::sum, .dtype = DType::f16, .numerics = Numerics::reproducible};
  const auto shape_of = [&](std::int64_t n, int chunks) {
    return family().shape(reduce_problem(spec, n), policy(Finish::one_block, 512, chunks));
  };
  const WorkShape four_chunks = shape_of(4096, 1);
  EXPECT_EQ(four_chunks.threads_that_load(), 4 * 32);
  EXPECT_EQ(four_chunks.bytes_in_flight_per_block, 4096 * 2);
  EXPECT_EQ(shape_of(4097, 1).threads_that_load(), 5 * 32);
  EXPECT_EQ(shape_of(4096, 2).threads_that_load(), 2 * 32);
  EXPECT_EQ(shape_of(1 << 20, 2).threads_that_load(), 512);
  EXPECT_EQ(family().shape(sum_f32(9), policy(Finish::one_block)).threads_that_load(), 256) << "in fast numerics";
}

TEST(ReduceFamily, AWarpHasNoMoreChunksInFlightThanThereAre) {
  const ReduceSpec spec{.op = ReduceOp::sum, .dtype = DType::f16, .numerics = Numerics::reproducible};
  const auto is_pruned = [&](std::int64_t n, int chunks) {
    return !family().prune(ProblemClass(reduce_problem(spec, n)), policy(Finish::one_block, 128, chunks), h100_facts())
                .empty();
  };
  EXPECT_TRUE(is_pruned(1000, 2));
  EXPECT_FALSE(is_pruned(1000, 1));
  EXPECT_FALSE(is_pruned(0, 1));
  EXPECT_FALSE(is_pruned(4096, 4));
}

TEST(ReduceFamily, AByteCostsTheInstructionsOfItsOperation) {
  const auto of = [](ReduceOp op, DType dtype) {
    return family().shape(reduce_problem(op, dtype, 4096), policy(Finish::last_block)).instructions_per_byte;
  };
  EXPECT_GT(of(ReduceOp::sum, DType::i8), of(ReduceOp::sum, DType::f32)) << "more elements";
  EXPECT_GT(of(ReduceOp::argmax, DType::i8), 2 * of(ReduceOp::max, DType::i8));
  EXPECT_GT(of(ReduceOp::sum, DType::f8e4m3), of(ReduceOp::sum, DType::i8));
  EXPECT_GT(of(ReduceOp::logsumexp, DType::f32), 4 * of(ReduceOp::minmax, DType::f32));
  const std::array ops{ReduceOp::max, ReduceOp::argmax};
  const Problem fused = FusedReduction(ops).problem(DType::f32, 4096);
  EXPECT_DOUBLE_EQ(fused.family->shape(fused, policy(Finish::last_block)).instructions_per_byte,
                   of(ReduceOp::max, DType::f32) + of(ReduceOp::argmax, DType::f32));
}

TEST(ReduceFamily, AnEmptyArrayIsOneTile) {
  EXPECT_EQ(family().shape(sum_f32(0), policy(Finish::last_block)).tiles, 1);
}

TEST(ReduceFamily, ShapeSaysHowBlocksMeet) {
  const WorkShape one = family().shape(sum_f32(9), policy(Finish::one_block));
  EXPECT_TRUE(one.one_block);
  EXPECT_EQ(one.launches, 1);
  EXPECT_FALSE(one.uses_last_block_ticket);
  const WorkShape last = family().shape(sum_f32(9), policy(Finish::last_block));
  EXPECT_FALSE(last.one_block);
  EXPECT_EQ(last.launches, 1);
  EXPECT_TRUE(last.uses_last_block_ticket);
  const WorkShape second = family().shape(sum_f32(9), policy(Finish::second_kernel));
  EXPECT_FALSE(second.one_block);
  EXPECT_EQ(second.launches, 2);
  EXPECT_FALSE(second.uses_last_block_ticket);
}

TEST(ReduceFamily, MovesEveryElementOnceAndTheResult) {
  EXPECT_EQ(family().bytes_moved(sum_f32(0)), 4);
  EXPECT_EQ(family().bytes_moved(sum_f32(10)), 44);
  EXPECT_EQ(family().bytes_moved(reduce_problem(ReduceOp::sum, DType::i32, 10)), 48);  // the sum is an i64
  EXPECT_EQ(family().bytes_moved(reduce_problem(ReduceOp::min, DType::i32, 10)), 44);
  EXPECT_EQ(family().bytes_moved(reduce_problem(ReduceOp::minmax, DType::i16, 10)), 24);
  EXPECT_EQ(family().bytes_moved(reduce_problem(ReduceOp::dot, DType::f16, 10)), 44);
}

TEST(ReduceFamily, WorkspaceHoldsOnePartialPerBlock) {
  EXPECT_EQ(family().workspace_bytes(sum_f32(9), {policy(Finish::one_block), {1}}), 0u);
  EXPECT_EQ(family().workspace_bytes(sum_f32(9), {policy(Finish::last_block), {264}}), 128u + 264 * 4);
  const Problem i32 = reduce_problem(ReduceOp::sum, DType::i32, 9);
  EXPECT_EQ(family().workspace_bytes(i32, {policy(Finish::second_kernel), {264}}), 128u + 264 * 8);
}

TEST(ReduceFamily, OneBlockIsOneLaunchOfOneBlock) {
  const Encoded encoded = encode(sum_f32(1 << 20), policy(Finish::one_block), 1);
  ASSERT_EQ(encoded.launches.size(), 1u);
  EXPECT_EQ(encoded.launches[0].entry, 0);
  EXPECT_EQ(encoded.launches[0].grid.x, 1u);
  EXPECT_EQ(encoded.launches[0].block.x, 256u);
  EXPECT_EQ(encoded.arguments(0).in[0], kIn);
  EXPECT_EQ(encoded.arguments(0).n, 1u << 20);
  EXPECT_EQ(encoded.arguments(0).out[0], kOut);
}

TEST(ReduceFamily, LastBlockGetsTheWorkspaceToo) {
  const Encoded encoded = encode(sum_f32(1 << 20), policy(Finish::last_block), 264);
  ASSERT_EQ(encoded.launches.size(), 1u);
  EXPECT_EQ(encoded.launches[0].grid.x, 264u);
  EXPECT_EQ(encoded.arguments(0).workspace, kWorkspace);
  EXPECT_EQ(encoded.arguments(0).out[0], kOut);
}

TEST(ReduceFamily, SecondKernelCombinesAsManyPartialsAsThereWereBlocks) {
  const Encoded encoded = encode(sum_f32(5000), policy(Finish::second_kernel), 264);
  ASSERT_EQ(encoded.launches.size(), 2u);
  EXPECT_EQ(encoded.launches[0].grid.x, 3u);
  EXPECT_EQ(encoded.arguments(0).workspace, kWorkspace);
  EXPECT_EQ(encoded.launches[1].entry, 1);
  EXPECT_EQ(encoded.launches[1].grid.x, 1u);
  EXPECT_EQ(encoded.arguments(1).workspace, kWorkspace);
  EXPECT_EQ(encoded.arguments(1).partials, 3u);
  EXPECT_EQ(encoded.arguments(1).n, 5000u);
  EXPECT_EQ(encoded.arguments(1).out[0], kOut);
}

TEST(ReduceFamily, TheGridIsCappedByTheWork) {
  EXPECT_EQ(encode(sum_f32(0), policy(Finish::last_block), 264).launches[0].grid.x, 1u);
  EXPECT_EQ(encode(sum_f32(2048), policy(Finish::last_block), 264).launches[0].grid.x, 1u);
  EXPECT_EQ(encode(sum_f32(2049), policy(Finish::last_block), 264).launches[0].grid.x, 2u);
  EXPECT_EQ(encode(sum_f32(2048 * 264), policy(Finish::last_block), 264).launches[0].grid.x, 264u);
  EXPECT_EQ(encode(sum_f32(std::int64_t{1} << 33), policy(Finish::last_block), 264).launches[0].grid.x, 264u);
}

TEST(ReduceFamily, IndicesAreWideWhereTheSizeClassReachesTwoToThe31) {
  const std::int64_t narrow = size_range(30 * kClassesPerOctave + 3).last;
  EXPECT_THAT(family().unit(sum_f32(narrow), policy(Finish::last_block)).source, HasSubstr("unsigned,"));
  EXPECT_THAT(family().unit(sum_f32(narrow), policy(Finish::last_block)).source, Not(HasSubstr("unsigned long long")));
  EXPECT_THAT(family().unit(sum_f32(narrow + 1), policy(Finish::last_block)).source, HasSubstr("unsigned long long,"));
  EXPECT_EQ(encode(sum_f32(narrow), policy(Finish::last_block), 8).arguments(0).n, static_cast<std::uint64_t>(narrow));
  const std::int64_t wide = (std::int64_t{1} << 33) + 5;
  EXPECT_EQ(encode(sum_f32(wide), policy(Finish::last_block), 8).arguments(0).n, static_cast<std::uint64_t>(wide));
}

TEST(ReduceFamily, AllSizesOfOneClassShareOneUnit) {
  for (int k = kSmallestSizeClass; k <= 40 * kClassesPerOctave; ++k)
    EXPECT_TRUE(family().unit(sum_f32(size_range(k).first), policy(Finish::last_block))
                    .has_code_of(family().unit(sum_f32(size_range(k).last), policy(Finish::last_block))));
}

TEST(ReduceFamily, EveryPolicyHasAUnitOfItsOwn) {
  std::vector<std::string> codes;
  DeviceFacts facts = h100_facts();
  facts.compute_capability = 100;
  for (const Policy& each : family().space().all())
    if (family().is_valid(sum_f32(99), each, facts).empty()) {
      const Unit unit = family().unit(sum_f32(99), each);
      codes.push_back(unit.source + unit.entries.front());
    }
  EXPECT_GT(codes.size(), 1000u);
  std::sort(codes.begin(), codes.end());
  EXPECT_EQ(std::adjacent_find(codes.begin(), codes.end()), codes.end());
}

TEST(ReduceFamily, UnitsNameTheirEntries) {
  EXPECT_THAT(family().unit(sum_f32(9), policy(Finish::last_block)).entries,
              ElementsAre("hone::kernel<&Kernel::reduce<hone::Grid::last_block, 1>, 256, 1>"));
  EXPECT_THAT(family().unit(sum_f32(9), policy(Finish::second_kernel)).entries,
              ElementsAre("hone::kernel<&Kernel::reduce<hone::Grid::publish, 1>, 256, 1>",
                          "hone::kernel<&Kernel::finish, 256, 1>"));
}

TEST(ReduceFamily, LongArraysAreReadFromALineOn) {
  const auto entry = [](std::int64_t n) {
    return family().unit(sum_f32(n), policy(Finish::last_block)).entries.front();
  };
  EXPECT_EQ(entry(1 << 24), "hone::kernel<&Kernel::reduce<hone::Grid::last_block, 1>, 256, 1>");
  EXPECT_EQ(entry(1 << 26), "hone::kernel<&Kernel::reduce<hone::Grid::last_block, 1, true>, 256, 1>");
}

TEST(ReduceFamily, SumsOfI32AreWide) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::i32, 7);
  const std::vector<BufferSpec> buffers = family().buffers(problem);
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].size_bytes(), 28u);
  EXPECT_EQ(buffers[1].dtype, DType::i64);
  EXPECT_EQ(buffers[1].elements, 1);
  EXPECT_THAT(family().unit(problem, policy(Finish::one_block)).source, HasSubstr("<hone::Sum, int, long long,"));
}

TEST(ReduceFamily, PoliciesAreStructs) {
  const auto reduce = policy(Finish::cluster, 512, 4).as<ReducePolicy>();
  EXPECT_EQ(reduce.block_threads, 512);
  EXPECT_EQ(reduce.unroll, 4);
  EXPECT_EQ(reduce.finish, Finish::cluster);
  EXPECT_EQ(reduce.cluster_blocks, 8);
  EXPECT_EQ(family().space().to_string(Policy::of(reduce)), 
            "block_threads=512 vector_bytes=16 unroll=4 tail=warp finish=cluster cluster_blocks=8 min_blocks=1");
}

/// The host device has the shared memory of all kernels of a module in each block, a GPU that of one.
TEST(ReduceFamily, OnTheHostTailsOfTwoKernelsShareABlocksMemory) {
  const ReduceSpec spec{.op = ReduceOp::mean_variance, .dtype = DType::f64};
  const auto why = [&](Finish finish, const DeviceFacts& facts) {
    const Policy one = Policy::of(ReducePolicy{.block_threads = 1024, .tail = Tail::shared, .finish = finish});
    return family().is_valid(reduce_problem(spec, 1 << 20), one, facts);
  };
  EXPECT_THAT(why(Finish::second_kernel, two_core_host_facts()).text(), Names("57344"));
  EXPECT_TRUE(why(Finish::last_block, two_core_host_facts()).empty());
  EXPECT_TRUE(why(Finish::second_kernel, h100_facts()).empty());
  const Policy rows = Policy::of(RowsPolicy{.block_threads = 1024, .scope = Scope::grid, .tail = Tail::shared});
  const Problem problem = reduce_rows_problem(spec, {.rows = 3, .columns = 1 << 20});
  EXPECT_FALSE(reduce_rows_family().is_valid(problem, rows, two_core_host_facts()).empty());
  EXPECT_TRUE(reduce_rows_family().is_valid(problem, rows, h100_facts()).empty());
}

}  // namespace
}  // namespace hone
