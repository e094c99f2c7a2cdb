// Indices, barriers, shared memory, atomics and fences.
#include "tests/runtime/host_device/host_kernel.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <thread>

#include "tests/support/names.h"

namespace hone::test {
namespace {

TEST(HostBlock, IndicesCountInThreeDimensions) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(unsigned* out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd(out + block * threads + thread, block * 1000 + thread + 1);
})");
  const DeviceVector<unsigned> out(device, std::vector<unsigned>(24 * 30, 0));
  kernel.launch({.grid = {2, 3, 4}, .block = {5, 3, 2}}, out.data());
  const auto values = out.values();
  for (unsigned block = 0; block < 24; ++block) {
    for (unsigned thread = 0; thread < 30; ++thread) EXPECT_EQ(values[block * 30 + thread], block * 1000 + thread + 1);
  }
}

constexpr char kBlockSum[] = R"(
extern "C" __global__ void entry(const float* in, float* out) {
  __shared__ float partial[1024];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned active = blockDim.x / 2; active > 0; active /= 2) {
    __syncthreads();
    if (threadIdx.x < active) partial[threadIdx.x] += partial[threadIdx.x + active];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
})";

TEST(HostBlock, TreeInSharedMemorySumsEachBlock) {
  const auto device = make_host_device();
  const HostKernel kernel(device, kBlockSum);
  EXPECT_EQ(kernel.kernel().resources.static_smem_bytes, 4096);
  for (const unsigned threads : {1u, 32u, 256u, 1024u}) {
    std::vector<float> in(7 * threads);
    std::iota(in.begin(), in.end(), 0.0f);
    const DeviceVector<float> from(device, in);
    const DeviceVector<float> to(device, std::vector<float>(7, -1.0f));
    kernel.launch({.grid = {7}, .block = {threads}}, static_cast<const float*>(from.data()), to.data());
    for (unsigned block = 0; block < 7; ++block) {
      const auto begin = in.begin() + block * threads;
      EXPECT_EQ(to.values()[block], std::accumulate(begin, begin + threads, 0.0f));
    }
  }
}

TEST(HostBlock, BarriersCountAndCombinePredicates) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(int* out) {
  const int t = threadIdx.x;
  const int odd = __syncthreads_count(t % 2);
  const int all = __syncthreads_and(t < 100), not_all = __syncthreads_and(t < 99);
  const int any = __syncthreads_or(t == 99), none = __syncthreads_or(t == 100);
  out[t] = odd * 10000 + all * 1000 + not_all * 100 + any * 10 + none;
})");
  const DeviceVector<int> out(device, std::vector<int>(100));
  kernel.launch({.block = {100}}, out.data());
  EXPECT_THAT(out.values(), testing::Each(50 * 10000 + 1000 + 10));
}

TEST(HostBlock, SharedMemoryIsPoisonedBeforeEachBlock) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(float* floats, int* ints) {
  __shared__ float f[32];
  __shared__ int i[32];
  floats[blockIdx.x * 32 + threadIdx.x] = f[threadIdx.x];
  ints[blockIdx.x * 32 + threadIdx.x] = i[threadIdx.x];
  f[threadIdx.x] = 1;
  i[threadIdx.x] = 1;
})");
  const DeviceVector<float> floats(device, std::vector<float>(32 * 9));
  const DeviceVector<int> ints(device, std::vector<int>(32 * 9));
  kernel.launch({.grid = {9}}, floats.data(), ints.data());
  EXPECT_THAT(floats.values(), testing::Each(testing::Truly([](float x) { return std::isnan(x); })));
  EXPECT_THAT(ints.values(), testing::Each(-1));
}

constexpr char kDynamic[] = R"(
namespace inner {
extern __shared__ __align__(16) unsigned char bytes[];
}
extern "C" __global__ void entry(int* out, int write) {
  extern __shared__ int ints[];
  __shared__ int fixed[3];
  fixed[threadIdx.x % 3] = 7;
  if (threadIdx.x < write) ints[threadIdx.x] = threadIdx.x * 3;
  __syncthreads();
  out[threadIdx.x] = reinterpret_cast<int*>(inner::bytes)[blockDim.x - 1 - threadIdx.x];
})";

TEST(HostBlock, DynamicSharedMemoryIsOneArrayOfAnyName) {
  const auto device = make_host_device();
  const HostKernel kernel(device, kDynamic);
  const DeviceVector<int> out(device, std::vector<int>(64));
  kernel.launch({.block = {64}, .dynamic_smem_bytes = 256}, out.data(), 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out.values()[static_cast<std::size_t>(i)], (63 - i) * 3);
}

#if !defined(__SANITIZE_ADDRESS__)  // which ends the process with a report of its own
TEST(HostBlock, WritingBeyondTheLaunchsDynamicSharedMemoryIsAnError) {
  const auto device = make_host_device();
  const HostKernel kernel(device, kDynamic);
  const DeviceVector<int> out(device, std::vector<int>(64));
  EXPECT_THAT(kernel.failure({.block = {64}, .dynamic_smem_bytes = 252}, out.data(), 64),
              Names("beyond", "252 bytes"));
}
#endif

TEST(HostBlock, TooMuchSharedMemoryIsRefused) {
  const auto device = make_host_device();
  const HostKernel kernel(device, kDynamic);
  EXPECT_THAT(kernel.failure({.dynamic_smem_bytes = 49153}, nullptr, 0), Names("shared", "memory"));
  EXPECT_EQ(device->resident_blocks(kernel.kernel(), 256, 40000), 1);
  EXPECT_EQ(device->resident_blocks(kernel.kernel(), 256, 49153), 0);
  EXPECT_EQ(device->resident_blocks(kernel.kernel(), 1025, 0), 0);
}

TEST(HostBlock, AtomicsAddUpAcrossBlocks) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
struct Sums { unsigned u; int i; unsigned long long ull; float f; double d; int min; unsigned max; int bits_or;
              int bits_xor; unsigned wrapped, down; int cas; int exchanged; };
extern "C" __global__ void entry(Sums* s) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&s->u, 1u);
  atomicAdd(&s->i, 2);
  atomicSub(&s->i, 1);
  atomicAdd(&s->ull, 3ull);
  atomicAdd(&s->f, 1.0f);
  atomicAdd(&s->d, 0.5);
  atomicMin(&s->min, -id);
  atomicMax(&s->max, static_cast<unsigned>(id));
  atomicOr(&s->bits_or, 1 << id % 31);
  atomicXor(&s->bits_xor, 5);
  atomicInc(&s->wrapped, 99);
  atomicDec(&s->down, 99);
  int seen = atomicAdd(&s->cas, 0), old;
  do { old = seen; seen = atomicCAS(&s->cas, old, old + 1); } while (seen != old);
  atomicExch(&s->exchanged, 42);
})");
  struct Sums {
    unsigned u; int i; unsigned long long ull; float f; double d; int min; unsigned max; int bits_or, bits_xor;
    unsigned wrapped, down; int cas; int exchanged;
  };
  const DeviceVector<Sums> sums(device, {Sums{}});
  kernel.launch({.grid = {50}, .block = {64}}, sums.data());
  const Sums s = sums.values()[0];
  EXPECT_EQ(s.u, 3200u);
  EXPECT_EQ(s.i, 3200);
  EXPECT_EQ(s.ull, 9600u);
  EXPECT_EQ(s.f, 3200.0f);
  EXPECT_EQ(s.d, 1600.0);
  EXPECT_EQ(s.min, -3199);
  EXPECT_EQ(s.max, 3199u);
  EXPECT_EQ(s.bits_or, 0x7fffffff);
  EXPECT_EQ(s.bits_xor, 0);
  EXPECT_EQ(s.wrapped, 0u);
  EXPECT_EQ(s.down, 0u);
  EXPECT_EQ(s.cas, 3200);
  EXPECT_EQ(s.exchanged, 42);
}

constexpr char kLastBlock[] = R"(
extern "C" __global__ void entry(const int* in, long long* partials, unsigned* ticket, long long* out) {
  __shared__ long long shared[64];
  __shared__ bool last;
  shared[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    long long sum = 0;
    for (int i = 0; i < 64; ++i) sum += shared[i];
    partials[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) {
    long long sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += __ldcg(partials + i);
    *out = sum;
  }
})";

TEST(HostBlock, LastBlockSeesWhatAllOthersPublished) {
  const auto device = make_host_device();
  const HostKernel kernel(device, kLastBlock);
  std::vector<int> in(64 * 33);
  std::iota(in.begin(), in.end(), 1);
  const DeviceVector<int> from(device, in);
  const DeviceVector<long long> partials(device, std::vector<long long>(33));
  const DeviceVector<unsigned> ticket(device, {0u});
  const DeviceVector<long long> out(device, {0ll});
  for (int repeat = 0; repeat < 5; ++repeat) {
    kernel.launch({.grid = {33}, .block = {64}}, static_cast<const int*>(from.data()), partials.data(), ticket.data(),
                  out.data());
    EXPECT_EQ(out.values()[0], std::accumulate(in.begin(), in.end(), 0ll));
    EXPECT_EQ(ticket.values()[0], 0u);
  }
}

TEST(HostBlock, SpinLockWithinABlockMakesProgress) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(int* flag) {
  if (threadIdx.x == 0) while (atomicAdd(flag, 0) == 0) {}
  if (threadIdx.x == 40) atomicExch(flag, 1);
})");
  const DeviceVector<int> flag(device, {0});
  kernel.launch({.block = {64}}, flag.data());
  EXPECT_EQ(flag.values()[0], 1);
}

TEST(HostBlock, ManyThreadsMayLaunchAtOnce) {
  const auto device = make_host_device();
  const HostKernel kernel(device, kBlockSum);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const DeviceVector<float> in(device, std::vector<float>(64 * 5, static_cast<float>(t + 1)));
      const DeviceVector<float> out(device, std::vector<float>(5));
      for (int i = 0; i < 20; ++i) {
        kernel.launch({.grid = {5}, .block = {64}}, static_cast<const float*>(in.data()), out.data());
        EXPECT_THAT(out.values(), testing::Each(64.0f * static_cast<float>(t + 1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HostBlock, MathAndBitsFollowTheCLibrary) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(float* f, int* i) {
  f[0] = expf(1.0f); f[1] = exp2f(3.0f); f[2] = logf(2.0f); f[3] = fmaxf(1.0f, 2.0f); f[4] = sqrtf(9.0f);
  f[5] = rsqrtf(4.0f); f[6] = fabsf(-3.0f); f[7] = max(1.0f, 5.0f); f[8] = __int_as_float(0x3f800000);
  i[0] = __popc(0xf0u); i[1] = __clz(1); i[2] = __ffs(8); i[3] = static_cast<int>(__brev(1u) >> 31);
  i[4] = __float_as_int(1.0f); i[5] = isnan(__int_as_float(0x7fc00000)); i[6] = min(3, 4); i[7] = warpSize;
  i[8] = sizeof(float4) + alignof(float4) + sizeof(double2) + alignof(int2) + sizeof(float3);
  const float4 v = make_float4(1, 2, 3, 4);
  i[9] = static_cast<int>(v.x + v.w) + static_cast<int>(dim3(2, 3).z);
})");
  const DeviceVector<float> f(device, std::vector<float>(9));
  const DeviceVector<int> i(device, std::vector<int>(10));
  kernel.launch({.block = {1}}, f.data(), i.data());
  EXPECT_THAT(f.values(),
              testing::ElementsAre(std::exp(1.0f), 8.0f, std::log(2.0f), 2.0f, 3.0f, 0.5f, 3.0f, 5.0f, 1.0f));
  EXPECT_THAT(i.values(), testing::ElementsAre(4, 31, 4, 1, 0x3f800000, 1, 3, 32, 16 + 16 + 16 + 8 + 12, 6));
}

}  // namespace
}  // namespace hone::test
