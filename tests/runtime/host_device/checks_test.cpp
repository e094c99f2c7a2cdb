// Each check fires, names both sides with their source lines, and leaves a device that works.
#include "tests/runtime/host_device/host_kernel.h"
#include "tests/runtime/support/long_under_sanitizers.h"
#include "tests/support/names.h"

namespace hone::test {
namespace {

using testing::AllOf;

using HostCheck = LongUnderSanitizers;

TEST_F(HostCheck, BarriersAtDifferentLinesDiverge) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x < 7)
    __syncthreads();
  else
    __syncthreads();
})"), AllOf(Names("divergent", "__syncthreads()", "\"entry\"", "test", "block (0,0,0)"),
            HasLine("thread (0,0,0)", "waits", "__syncthreads()", "unit.cu:4"),
            HasLine("thread (7,0,0)", "waits", "__syncthreads()", "unit.cu:6")));
}

TEST_F(HostCheck, BarrierAfterAThreadReturned) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncwarp();
  if (threadIdx.x == 3) return;
  __syncthreads();
})"), AllOf(Names("divergent", "__syncthreads()"),
            HasLine("thread (0,0,0)", "waits", "__syncthreads()", "unit.cu:5"),
            HasLine("thread (3,0,0)", "returned", "last", "unit.cu:3")));
}

TEST_F(HostCheck, ReturningBeforeTheOthersReachTheBarrier) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 0) return;
  __syncthreads();
})"), AllOf(Names("divergent", "__syncthreads()"),
            HasLine("thread (1,0,0)", "waits", "__syncthreads()", "unit.cu:4"),
            HasLine("thread (0,0,0)", "returned")));
}

TEST_F(HostCheck, ReportNamesHeaderAndBlock) {
  const auto device = make_host_device(HostOptions{.sm_count = 1, .compiler = {}, .order = {}});
  const HostKernel kernel(device, R"(#include "sync.cuh"
extern "C" __global__ void entry() {
  if (blockIdx.y == 2 && threadIdx.y == 1) return;
  meet();
})", "entry", {{"sync.cuh", "\n__device__ void meet() {\n  __syncthreads();\n}\n"}});
  EXPECT_THAT(kernel.failure({.grid = {1, 4}, .block = {4, 2}}),
              AllOf(Names("block (0,2,0)"),
                    HasLine("thread (0,0,0)", "waits", "__syncthreads()", "sync.cuh:3"),
                    HasLine("thread (0,1,0)", "returned")));
}

TEST_F(HostCheck, MaskMustNameTheCaller) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0);
})"), AllOf(Names("0x0000ffff", "omits"), HasLine("thread (16,0,0)", "unit.cu:3")));
}

TEST_F(HostCheck, FullMaskAfterALaneReturned) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 0) return;
  out[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1, 1);
})"), AllOf(Names("names", "lanes", "not exist", "(0x00000001)"),
            HasLine("thread (1,0,0)", "unit.cu:4"),
            HasLine("thread (0,0,0)", "returned")));
}

TEST_F(HostCheck, ReturningWhileTheWarpWaits) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 9) return;
  out[threadIdx.x] = __any_sync(0xffffffffu, 1);
})"), AllOf(Names("waits", "lane"),
            HasLine("thread (0,0,0)", "waits", "warp", "unit.cu:4"),
            HasLine("thread (9,0,0)", "returned")));
}

TEST_F(HostCheck, FullMaskInABlockSmallerThanAWarp) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncwarp();
})", {.block = {20}}), Names("not exist", "(0xfff00000)", "unit.cu:3"));
}

TEST_F(HostCheck, LanesInDifferentWarpOperations) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x % 32 < 5)
    out[0] = __shfl_sync(0xffffffffu, 1, 0);
  else
    out[1] = __ballot_sync(0xffffffffu, 1);
})"), AllOf(Names("different", "warp"),
            HasLine("thread (5,0,0)", "waits", "warp", "unit.cu:6"),
            HasLine("thread (0,0,0)", "waits", "warp", "unit.cu:4")));
}

TEST_F(HostCheck, LanesWithDifferentMasks) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncwarp(threadIdx.x == 31 ? 0x80000001u : 0xffffffffu);
})"), AllOf(Names("0x80000001", "0xffffffff"), HasLine("thread (31,0,0)"), HasLine("thread (0,0,0)")));
}

TEST_F(HostCheck, ShuffleFromALaneOutsideTheMask) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1, 1);
})"), AllOf(Names("shuffle", "reads", "16", "0x0000ffff", "unit.cu:3"), HasLine("thread (15,0,0)")));
}

TEST_F(HostCheck, ShuffleOfAnOddWidth) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1, 12);
})"), Names("shuffle", "12", "unit.cu:3"));
}

TEST_F(HostCheck, DeadlockSaysWhoWaitsWhere) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 5)
    __syncwarp();
  else
    __syncthreads();
})"), AllOf(Names("deadlock"),
            HasLine("thread (0,0,0)", "waits", "__syncthreads()", "unit.cu:6"),
            HasLine("thread (5,0,0)", "waits", "warp", "unit.cu:4")));
}

TEST_F(HostCheck, TrapAndAssertEndTheLaunch) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 33) __trap();
})"), AllOf(Names("__trap()"), HasLine("thread (33,0,0)", "unit.cu:3")));
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  assert(threadIdx.x < 2);
})"), AllOf(Names("assertion", "`threadIdx.x < 2`"), HasLine("thread (2,0,0)", "unit.cu:3")));
}

TEST_F(HostCheck, WaitingForABlockThatCannotStartEndsAtTheDeadline) {
  HostOptions options;
  options.block_deadline = std::chrono::milliseconds(200);
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (blockIdx.x == 0) {
    while (atomicAdd(out, 0) == 0) {
    }
  } else if (blockIdx.x == 100) {
    atomicExch(out, 1);
  }
  while (atomicAdd(out + 1, 0) == 0) {
  }
})", {.grid = {101}, .block = {1}}, options), Names("spins", "200 ms", "unit.cu"));
}

}  // namespace
}  // namespace hone::test
