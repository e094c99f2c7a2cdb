// Each check fires, names both sides with their source lines, and leaves a device that works.
#include "tests/runtime/host_device/host_kernel.h"

namespace hone::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(HostCheck, BarriersAtDifferentLinesDiverge) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x < 7)
    __syncthreads();
  else
    __syncthreads();
})"), AllOf(HasSubstr("divergent __syncthreads()"), HasSubstr("\"entry\" (test unit)"), HasSubstr("block (0,0,0)"),
            HasSubstr("thread (0,0,0) waits in __syncthreads() at unit.cu:4"),
            HasSubstr("thread (7,0,0) waits in __syncthreads() at unit.cu:6")));
}

TEST(HostCheck, BarrierAfterAThreadReturned) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncwarp();
  if (threadIdx.x == 3) return;
  __syncthreads();
})"), AllOf(HasSubstr("divergent __syncthreads()"), HasSubstr("thread (0,0,0) waits in __syncthreads() at unit.cu:5"),
            HasSubstr("thread (3,0,0) has returned, last seen at unit.cu:3")));
}

TEST(HostCheck, ReturningBeforeTheOthersReachTheBarrier) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 0) return;
  __syncthreads();
})"), AllOf(HasSubstr("divergent __syncthreads()"), HasSubstr("thread (1,0,0) waits in __syncthreads() at unit.cu:4"),
            HasSubstr("thread (0,0,0) has returned")));
}

TEST(HostCheck, ReportNamesHeaderAndBlock) {
  const auto device = make_host_device(HostOptions{.sm_count = 1, .compiler = {}, .order = {}});
  const HostKernel kernel(device, R"(#include "sync.cuh"
extern "C" __global__ void entry() {
  if (blockIdx.y == 2 && threadIdx.y == 1) return;
  meet();
})", "entry", {{"sync.cuh", "\n__device__ void meet() {\n  __syncthreads();\n}\n"}});
  EXPECT_THAT(kernel.failure({.grid = {1, 4}, .block = {4, 2}}),
              AllOf(HasSubstr("block (0,2,0)"), HasSubstr("thread (0,0,0) waits in __syncthreads() at sync.cuh:3"),
                    HasSubstr("thread (0,1,0) has returned")));
}

TEST(HostCheck, MaskMustNameTheCaller) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0);
})"), AllOf(HasSubstr("0x0000ffff omits the calling lane"), HasSubstr("thread (16,0,0) is at unit.cu:3")));
}

TEST(HostCheck, FullMaskAfterALaneReturned) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 0) return;
  out[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1, 1);
})"), AllOf(HasSubstr("names lanes that have exited or do not exist (0x00000001)"),
            HasSubstr("thread (1,0,0) is at unit.cu:4"), HasSubstr("thread (0,0,0) has returned")));
}

TEST(HostCheck, ReturningWhileTheWarpWaits) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 9) return;
  out[threadIdx.x] = __any_sync(0xffffffffu, 1);
})"), AllOf(HasSubstr("waits for a lane that has exited"),
            HasSubstr("thread (0,0,0) waits in a warp operation at unit.cu:4"),
            HasSubstr("thread (9,0,0) has returned")));
}

TEST(HostCheck, FullMaskInABlockSmallerThanAWarp) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncwarp();
})", {.block = {20}}), AllOf(HasSubstr("do not exist (0xfff00000)"), HasSubstr("unit.cu:3")));
}

TEST(HostCheck, LanesInDifferentWarpOperations) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x % 32 < 5)
    out[0] = __shfl_sync(0xffffffffu, 1, 0);
  else
    out[1] = __ballot_sync(0xffffffffu, 1);
})"), AllOf(HasSubstr("different warp operations"), HasSubstr("thread (5,0,0) waits in a warp operation at unit.cu:6"),
            HasSubstr("thread (0,0,0) waits in a warp operation at unit.cu:4")));
}

TEST(HostCheck, LanesWithDifferentMasks) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  __syncwarp(threadIdx.x == 31 ? 0x80000001u : 0xffffffffu);
})"), AllOf(HasSubstr("(0x80000001 and 0xffffffff)"), HasSubstr("thread (31,0,0)"), HasSubstr("thread (0,0,0)")));
}

TEST(HostCheck, ShuffleFromALaneOutsideTheMask) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1, 1);
})"), AllOf(HasSubstr("shuffle reads lane 16 of the warp, which is not in the mask 0x0000ffff"),
            HasSubstr("thread (15,0,0)"), HasSubstr("unit.cu:3")));
}

TEST(HostCheck, ShuffleOfAnOddWidth) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1, 12);
})"), AllOf(HasSubstr("shuffle of width 12"), HasSubstr("unit.cu:3")));
}

TEST(HostCheck, DeadlockSaysWhoWaitsWhere) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 5)
    __syncwarp();
  else
    __syncthreads();
})"), AllOf(HasSubstr("deadlock"), HasSubstr("thread (0,0,0) waits in __syncthreads() at unit.cu:6"),
            HasSubstr("thread (5,0,0) waits in a warp operation at unit.cu:4")));
}

TEST(HostCheck, TrapAndAssertEndTheLaunch) {
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  if (threadIdx.x == 33) __trap();
})"), AllOf(HasSubstr("__trap()"), HasSubstr("thread (33,0,0) is at unit.cu:3")));
  EXPECT_THAT(report(R"(
extern "C" __global__ void entry(int* out) {
  assert(threadIdx.x < 2);
})"), AllOf(HasSubstr("assertion `threadIdx.x < 2` failed"), HasSubstr("thread (2,0,0) is at unit.cu:3")));
}

TEST(HostCheck, WaitingForABlockThatCannotStartEndsAtTheDeadline) {
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
})", {.grid = {101}, .block = {1}}, options), AllOf(HasSubstr("still spins after 200 ms"), HasSubstr("unit.cu:")));
}

}  // namespace
}  // namespace hone::test
