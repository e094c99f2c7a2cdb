#include "tests/runtime/host_checks/planted_kernels.h"

#include <numeric>
#include <string>

#include <hone/error.h>

namespace hone::test {
namespace {

// The beginnings of reports, by check.
constexpr std::string_view kBarrier = "divergent __syncthreads()";
constexpr std::string_view kAbsent = "names lanes that have exited or do not exist";
constexpr std::string_view kMismatch = "different warp operations or with different masks";
constexpr std::string_view kOutside = "which is not in the mask";
constexpr std::string_view kOverrun = "dynamic shared memory was written beyond";
constexpr std::string_view kOrder = "depends on the order";
constexpr std::string_view kSmemFill = "depends on what shared memory holds";
constexpr std::string_view kCopies = "depends on when asynchronous copies land";
constexpr std::string_view kReference = "wrong result";
constexpr std::string_view kLost = "may lose one of the changes";
constexpr std::string_view kRace = "ThreadSanitizer: data race";
constexpr std::string_view kHeap = "AddressSanitizer: heap-buffer-overflow";
constexpr std::string_view kPoisoned = "AddressSanitizer: use-after-poison";
constexpr std::string_view kWild = "accessed the address";
constexpr std::string_view kZero = "divided an integer by zero";
constexpr std::string_view kUnseen = "";

constexpr std::array<std::string_view, 3> always(std::string_view finding) { return {finding, finding, finding}; }

constexpr PlantedKernel kKernels[] = {
    // --- barriers ---
    {.name = "barriers_at_different_lines", .source = R"(
    if (WRONG && threadIdx.x < 7)
      __syncthreads();  // <-
    else
      __syncthreads();  // <-
    out[threadIdx.x] = 1;
)", .finding = always(kBarrier)},
    {.name = "thread_returns_before_barrier", .source = R"(
    if (WRONG && threadIdx.x == 63) return;
    __syncthreads();  // <-
    out[threadIdx.x] = 1;
)", .finding = always(kBarrier)},
    {.name = "barrier_in_a_loop_of_uneven_length", .source = R"(
    const int rounds = WRONG ? 1 + threadIdx.x % 2 : 2;
    for (int i = 0; i < rounds; ++i)
      __syncthreads();  // <-
    out[threadIdx.x] = __syncthreads_count(1);
)", .finding = always(kBarrier)},
    {.name = "barrier_against_warp_operation", .source = R"(
#if WRONG
    if (threadIdx.x == 5) __syncwarp();  // <-
    else __syncthreads();  // <-
#else
    __syncwarp();
    __syncthreads();
#endif
)", .finding = always("deadlock")},

    // --- warp operations ---
    {.name = "full_mask_after_exit", .source = R"(
    if (WRONG && threadIdx.x == 0) return;
    const int v = WRONG || threadIdx.x > 0 ? in[threadIdx.x] : 0;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, v, 1);  // <-
)", .finding = always(kAbsent)},
    {.name = "full_mask_in_a_small_block", .source = R"(
    out[threadIdx.x] = __any_sync(WRONG ? 0xffffffffu : 0xfffffu, 1);  // <-
)", .finding = always(kAbsent), .block = {20, 1, 1}},
    {.name = "mask_omits_the_caller", .source = R"(
    out[threadIdx.x] = __shfl_sync(WRONG ? 0x7fffffffu : 0xffffffffu, 3, 0);  // <-
)", .finding = always("omits the calling lane")},
    {.name = "shuffle_from_an_idle_lane", .source = R"(
    if (threadIdx.x % 32 < 16)
      out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, in[threadIdx.x], 8, WRONG ? 32 : 16);  // <-
)", .finding = always(kOutside)},
    {.name = "activemask_taken_for_the_whole_warp", .source = R"(
    out[threadIdx.x] = __shfl_xor_sync(WRONG ? __activemask() : 0xffffffffu, in[threadIdx.x], 1);  // <-
)", .finding = always(kOutside)},
    {.name = "shuffle_of_an_odd_width", .source = R"(
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1, WRONG ? 12 : 16);  // <-
)", .finding = always("shuffle of width 12")},
    {.name = "lanes_in_different_operations", .source = R"(
#if WRONG
    if (threadIdx.x % 32 < 5) out[0] = __shfl_sync(0xffffffffu, 1, 0);  // <-
    else out[1] = __ballot_sync(0xffffffffu, 1);  // <-
#else
    const int v = __shfl_sync(0xffffffffu, 1, 0);
    const unsigned lanes = __ballot_sync(0xffffffffu, 1);
    out[threadIdx.x] = v + lanes;
#endif
)", .finding = always(kMismatch)},
    {.name = "lanes_with_different_masks", .source = R"(
    __syncwarp(WRONG && threadIdx.x % 32 == 31 ? 0x80000001u : 0xffffffffu);  // <-
)", .finding = always(kMismatch)},
    {.name = "assumption_that_does_not_hold", .source = R"(
    assert(in[threadIdx.x] < (WRONG ? 63 : 64));  // <-
)", .finding = always("assertion")},

    // --- bounds and memory ---
    {.name = "write_beyond_dynamic_shared_memory", .source = R"(
    extern __shared__ int shared[];
    shared[threadIdx.x + WRONG] = in[threadIdx.x];  // <-
    __syncthreads();  // <-
    out[threadIdx.x] = shared[63 - threadIdx.x + WRONG];
)", .finding = {kOverrun, kPoisoned, kOverrun}, .dynamic_smem_bytes = 256},
    {.name = "read_beyond_dynamic_shared_memory", .source = R"(
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 64 + WRONG; ++i)
      out[round] += shared[i];  // <-
)", .finding = {kSmemFill, kPoisoned, kSmemFill}, .dynamic_smem_bytes = 256},
    {.name = "static_shared_array_overrun", .source = R"(
    __shared__ int shared[64];
    shared[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 64 + WRONG * in[1]; ++i)
      out[round] += shared[i];  // <-
)", .finding = {"index 64 is out of bounds of an array 'int [64]'", "index 64 out of bounds for type 'int [64]'",
                 kUnseen}},
    {.name = "global_read_out_of_bounds", .source = R"(
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 256 + WRONG)
      out[i % 256] = in[i];  // <-
)", .finding = {kWild, kHeap, kUnseen}, .grid = {5, 1, 1}, .crashes_plain = true},
    {.name = "global_write_out_of_bounds", .source = R"(
    out[threadIdx.x * 4 + WRONG * 4] = 1;  // <-
)", .finding = {kWild, kHeap, kUnseen}, .crashes_plain = true},
    {.name = "division_by_zero", .source = R"(
    out[threadIdx.x] = 100 / (in[threadIdx.x] + 1 - WRONG);  // <-
)", .finding = {kZero, "division by zero", kZero}},
    {.name = "misaligned_vector_load", .source = R"(
    const int4 v = reinterpret_cast<const int4*>(in + WRONG)[threadIdx.x];  // <-
    out[threadIdx.x] = v.x + v.w;
)", .finding = {kUnseen, "misaligned address", kUnseen}, .block = {32, 1, 1}, .crashes_plain = true},
    {.name = "shared_memory_used_before_it_is_set", .source = R"(
    __shared__ int shared[64];
    if (!WRONG || threadIdx.x > 0) shared[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 64; ++i) out[round] += shared[i];
)", .finding = always(kReference), .expected = 64},
    {.name = "shared_memory_that_nobody_sets", .source = R"(
    __shared__ int shared[64];
    if (!WRONG || threadIdx.x > 0) shared[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = shared[63 - threadIdx.x];
)", .finding = always(kSmemFill)},
    {.name = "sum_that_overflows", .source = R"(
    const int big = 0x7fffff00 + in[threadIdx.x];
    out[threadIdx.x] = WRONG ? big + 255 : big;  // <-
)", .finding = {"signed overflow", "signed integer overflow", kUnseen}},
    {.name = "product_that_overflows", .source = R"(
    const int side = in[threadIdx.x] + (WRONG ? 46341 : 46241);
    out[threadIdx.x] = side * side;  // <-
)", .finding = {"signed overflow", "signed integer overflow", kUnseen}, .block = {32, 1, 1}},

    // --- races in a block ---
    {.name = "missing_syncthreads", .source = R"(
    __shared__ int shared[64];
    shared[threadIdx.x] = in[threadIdx.x];  // <-
    if (!WRONG) __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];  // <-
)", .finding = {kOrder, kOrder, kRace}},
    {.name = "missing_syncwarp", .source = R"(
    __shared__ int shared[32];
    shared[threadIdx.x] = in[threadIdx.x];  // <-
    if (!WRONG) __syncwarp();
    out[threadIdx.x] = shared[31 - threadIdx.x];  // <-
)", .finding = {kOrder, kOrder, kRace}, .block = {32, 1, 1}},
    {.name = "shuffle_taken_for_a_memory_barrier", .source = R"(
    __shared__ int shared[32];
    shared[threadIdx.x] = in[threadIdx.x];  // <-
    const int v = __shfl_xor_sync(0xffffffffu, 1, 1);
    if (!WRONG) __syncwarp();
    out[threadIdx.x] = v + shared[31 - threadIdx.x];  // <-
)", .finding = {kUnseen, kUnseen, kRace}, .block = {32, 1, 1}},
    {.name = "syncwarp_where_the_block_must_meet", .source = R"(
    __shared__ int shared[64];
    shared[threadIdx.x] = in[threadIdx.x];  // <-
    if (WRONG) __syncwarp();
    else __syncthreads();
    out[threadIdx.x] = shared[63 - threadIdx.x];  // <-
)", .finding = {kOrder, kOrder, kRace}},
    {.name = "no_barrier_between_two_uses_of_a_buffer", .source = R"(
    __shared__ int shared[64];
    int v = in[threadIdx.x];
    for (int use = 0; use < 2; ++use) {
      shared[threadIdx.x] = v;  // <-
      __syncthreads();
      v += shared[(threadIdx.x + 1) % 64];  // <-
      if (!WRONG) __syncthreads();
    }
    out[threadIdx.x] = v;
)", .finding = {kOrder, kOrder, kRace}},
    {.name = "no_barrier_after_one_thread_sets_a_flag", .source = R"(
    __shared__ int flag;
    if (threadIdx.x == 0) flag = in[5];  // <-
    if (!WRONG) __syncthreads();
    out[threadIdx.x] = flag;  // <-
)", .finding = {kOrder, kOrder, kRace}},
    {.name = "counter_that_is_not_atomic", .source = R"(
    if (WRONG) *words += 1;  // <-
    else atomicAdd(words, 1u);
)", .finding = {kLost, kLost, kRace}},
    {.name = "plain_access_beside_an_atomic", .source = R"(
    if (WRONG && threadIdx.x == 9) *words += 1;  // <-
    else atomicAdd(words, 1u);  // <-
)", .finding = {kLost, kLost, kRace}},

    // --- races between blocks ---
    {.name = "blocks_store_to_one_place", .source = R"(
    if (threadIdx.x == 0) out[WRONG ? 0 : blockIdx.x] = blockIdx.x;  // <-
)", .finding = {kOrder, kOrder, kRace}, .grid = {3, 1, 1}},
    {.name = "missing_threadfence_before_the_ticket", .source = R"(
    __shared__ bool last;
    if (threadIdx.x == 0) {
      out[128 + blockIdx.x] = in[blockIdx.x];  // <-
      if (!WRONG) __threadfence();
      last = atomicInc(words, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x == 0)
      for (int i = 0; i < gridDim.x; ++i) out[round] += __ldcg(out + 128 + i);  // <-
)", .finding = {kUnseen, kUnseen, kRace}, .grid = {4, 1, 1}, .expected = 6, .rounds = 2},
    {.name = "block_fence_between_blocks", .source = R"(
    if (threadIdx.x != 0) return;
    out[128 + blockIdx.x] = in[blockIdx.x];  // <-
    if (WRONG) __threadfence_block();
    else __threadfence();
    if (atomicInc(words, gridDim.x - 1) != gridDim.x - 1) return;
    __threadfence();
    for (int i = 0; i < gridDim.x; ++i) out[round] += __ldcg(out + 128 + i);  // <-
)", .finding = {kUnseen, kUnseen, kRace}, .grid = {4, 1, 1}, .expected = 6},
    {.name = "ticket_that_does_not_reset", .source = R"(
    if (threadIdx.x != 0) return;
    out[128 + blockIdx.x] = in[blockIdx.x];
    __threadfence();
    const unsigned ticket = WRONG ? atomicAdd(words, 1u) : atomicInc(words, gridDim.x - 1);
    if (ticket != gridDim.x - 1) return;
    __threadfence();
    for (int i = 0; i < gridDim.x; ++i) out[round] += __ldcg(out + 128 + i);
)", .finding = always(kReference), .grid = {4, 1, 1}, .expected = 6, .rounds = 2},
    {.name = "ticket_reset_by_a_plain_store", .source = R"(
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(words, 1u) != gridDim.x - 1) return;  // <-
    __threadfence();
    if (WRONG) *words = 0;  // <-
    else atomicExch(words, 0u);
)", .finding = {kUnseen, kUnseen, kRace}, .grid = {4, 1, 1}, .rounds = 2},

    // --- asynchronous copies ---
    {.name = "copy_read_before_it_lands", .source = R"(
    __shared__ int staged[64];
    hone_host::start_copy(staged + threadIdx.x, in + threadIdx.x);
    if (!WRONG) hone_host::end_copy_group();
    hone_host::wait_for_copy_groups(0);
    out[threadIdx.x] = staged[threadIdx.x];
    hone_host::end_copy_group();
    hone_host::wait_for_copy_groups(0);
)", .finding = {kCopies, kUnseen, kUnseen}},
    {.name = "bulk_copy_nobody_waits_for", .source = R"(
    __shared__ int staged[4];
    __shared__ unsigned long long landed;
    if (threadIdx.x != 0) return;
    landed = 0;
    hone_host::start_bulk_copy(staged, in, 16, &landed);  // <-
    if (!WRONG) while (atomicAdd(&landed, 0ull) == 0) __nanosleep(0);
)", .finding = {"in flight", kUnseen, kUnseen}},

    // --- wrong arithmetic: found by the reference alone ---
    {.name = "wrong_identity", .source = R"(
    int most = WRONG ? 0 : -0x7fffffff - 1;
    for (int i = threadIdx.x; i < 100; i += 32) most = max(most, in[i] - 200);
    most = __reduce_max_sync(0xffffffffu, most);
    if (threadIdx.x == 0) out[round] = most;
)", .finding = always(kReference), .block = {32, 1, 1}, .expected = -101},
};

}  // namespace

std::span<const PlantedKernel> planted_kernels() { return kKernels; }

HostCheck check_of(const PlantedKernel& kernel, bool is_wrong) {
  std::vector<int> in(256);
  std::iota(in.begin(), in.end(), 0);
  HostCheck check;
  check.unit.name = kernel.name;
  check.unit.source = std::string(is_wrong ? "#define WRONG 1\n" : "#define WRONG 0\n") +
                      "extern \"C\" __global__ void entry(const int* in, int* out, unsigned* words, int round) {" +
                      std::string(kernel.source) + "}\n";
  check.unit.entries = {"entry"};
  check.buffers = {CheckBuffer::of("in", in), CheckBuffer::of("out", std::vector<int>(256)),
                   CheckBuffer::of("words", std::vector<unsigned>(64))};
  check.run = [&kernel](const HostRun& run) {
    for (int round = 0; round < kernel.rounds; ++round) {
      int* const out = run.buffer<int>(1);
      run.launch(kernel.grid, kernel.block, kernel.dynamic_smem_bytes, static_cast<const int*>(run.buffer<int>(0)), out,
                 run.buffer<unsigned>(2), round);
      if (!kernel.expected || out[round] == *kernel.expected) continue;
      throw Error(ErrorCode::device_failed, "wrong result: " + std::to_string(out[round]) + " in round " +
                                                std::to_string(round) + ", not " + std::to_string(*kernel.expected));
    }
  };
  return check;
}

}  // namespace hone::test
