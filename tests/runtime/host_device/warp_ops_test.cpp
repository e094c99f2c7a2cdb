// Every warp operation against a scalar model of the CUDA C++ Programming Guide.
#include "tests/runtime/host_device/host_kernel.h"

#include <bit>
#include <functional>

#include "tests/runtime/support/long_under_sanitizers.h"

namespace hone::test {
namespace {

constexpr unsigned kMasks[] = {0xffffffffu, 0x0000ffffu, 0xffff0000u, 0x55555555u, 0x80000001u, 0x00000010u};

/// One expression of `v` = in[lane], `mask` and `width` for the type T, evaluated by the lanes of a mask.
template <class T>
class WarpExpression {
 public:
  WarpExpression(const std::string& type, const std::string& expression)
      : device_(make_host_device()), kernel_(device_, "using T = " + type + R"(;
extern "C" __global__ void entry(const T* in, T* out, unsigned mask, int width) {
  const int lane = threadIdx.x;
  const T v = in[lane];
  if ((mask >> lane & 1) == 0) return;
  out[lane] = )" + expression + ";\n}") {}

  /// By lane; −1 outside of the mask.
  std::vector<T> operator()(const std::vector<T>& in, unsigned mask, int width = 32) const {
    const DeviceVector<T> from(device_, in);
    const DeviceVector<T> to(device_, std::vector<T>(32, static_cast<T>(-1)));
    kernel_.launch({}, static_cast<const T*>(from.data()), to.data(), mask, width);
    return to.values();
  }

 private:
  std::shared_ptr<Device> device_;
  HostKernel kernel_;
};

template <class T>
std::vector<T> inputs() {
  std::vector<T> in(32);
  for (std::size_t i = 0; i < 32; ++i) in[i] = static_cast<T>(static_cast<double>((i * 7 + 3) % 11) - 4);
  return in;
}

template <class T>
void expect_shuffle(const std::string& type, const std::string& expression,
                    const std::function<int(int lane, int first, int width)>& source) {
  const WarpExpression<T> run(type, expression);
  const auto in = inputs<T>();
  for (const int width : {1, 4, 16, 32}) {
    const auto out = run(in, 0xffffffffu, width);
    for (int lane = 0; lane < 32; ++lane) {
      const int from = source(lane, lane / width * width, width);
      EXPECT_EQ(out[static_cast<std::size_t>(lane)], in[static_cast<std::size_t>(from)])
          << type << " " << expression << " width " << width << " lane " << lane;
    }
  }
}

template <class T>
void expect_shuffles(const std::string& type) {
  expect_shuffle<T>(type, "__shfl_sync(mask, v, lane * 3 + 5, width)",
                    [](int lane, int first, int width) { return first + (lane * 3 + 5) % width; });
  expect_shuffle<T>(type, "__shfl_up_sync(mask, v, 2, width)",
                    [](int lane, int first, int) { return lane - 2 < first ? lane : lane - 2; });
  expect_shuffle<T>(type, "__shfl_down_sync(mask, v, 3, width)",
                    [](int lane, int first, int width) { return lane + 3 >= first + width ? lane : lane + 3; });
  expect_shuffle<T>(type, "__shfl_xor_sync(mask, v, 9, width)",
                    [](int lane, int first, int width) { return (lane ^ 9) >= first + width ? lane : lane ^ 9; });
}

using HostWarp = LongUnderSanitizers;

TEST_F(HostWarp, ShufflesMoveEveryType) {
  expect_shuffles<int>("int");
  expect_shuffles<unsigned>("unsigned");
  expect_shuffles<float>("float");
  expect_shuffles<double>("double");
  expect_shuffles<long long>("long long");
  expect_shuffles<unsigned long long>("unsigned long long");
  expect_shuffles<long>("long");
  expect_shuffles<unsigned long>("unsigned long");
}

TEST_F(HostWarp, SmallTypesBecomeInts) {
  // As CUDA's overloads have it: the integral promotions choose int, and the call gives one.
  for (const std::string type : {"short", "unsigned short", "signed char", "unsigned char", "bool"}) {
    const WarpExpression<int> run(
        "int", "[&] { const " + type +
                   " s = lane == 3; static_assert(__is_same("
                   "decltype(__shfl_sync(mask, s, 3)), int) && __is_same(decltype(__shfl_up_sync(mask, s, 1)), "
                   "int) && __is_same(decltype(__reduce_add_sync(mask, s)), int)); "
                   "return 100 * __shfl_sync(mask, s, 3) + 10 * __shfl_xor_sync(mask, s, 1) + "
                   "(__match_any_sync(mask, s) == 8u); }()");
    const auto out = run(inputs<int>(), 0xffffffffu);
    for (std::size_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(out[lane], 100 + 10 * (lane == 2) + (lane == 3)) << type << " lane " << lane;
  }
}

template <class T>
void expect_matches(const std::string& type) {
  const auto in = inputs<T>();
  const WarpExpression<T> run(type,
                              "[&] { int all; const unsigned lanes = __match_any_sync(mask, v), "
                              "every = __match_all_sync(mask, v, &all); return static_cast<T>(__popc(lanes) * 4 + "
                              "all * 2 + (every != 0)); }()");
  for (const unsigned mask : {0xffffffffu, 0x00000010u, 0x55555555u}) {
    const auto out = run(in, mask);
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      int equal = 0;
      for (unsigned other = 0; other < 32; ++other) equal += (mask >> other & 1) != 0 && in[other] == in[lane];
      EXPECT_EQ(out[lane], static_cast<T>(equal * 4 + (equal == std::popcount(mask) ? 3 : 0))) << type;
    }
  }
}

TEST_F(HostWarp, MatchesCompareEveryType) {
  expect_matches<int>("int");
  expect_matches<unsigned>("unsigned");
  expect_matches<long>("long");
  expect_matches<unsigned long>("unsigned long");
  expect_matches<long long>("long long");
  expect_matches<unsigned long long>("unsigned long long");
  expect_matches<float>("float");
  expect_matches<double>("double");
}

TEST_F(HostWarp, VotesCountTheMaskOnly) {
  const auto in = inputs<int>();
  const WarpExpression<int> run_any("int", "__any_sync(mask, v > 0)"), run_all("int", "__all_sync(mask, v > 0)");
  const WarpExpression<unsigned> run_ballot("unsigned", "__ballot_sync(mask, static_cast<int>(v) > 0)");
  for (const unsigned mask : kMasks) {
    unsigned positive = 0;
    for (unsigned lane = 0; lane < 32; ++lane) positive |= unsigned{in[lane] > 0} << lane;
    const auto any = run_any(in, mask);
    const auto all = run_all(in, mask);
    const auto ballot = run_ballot(std::vector<unsigned>(in.begin(), in.end()), mask);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const bool in_mask = (mask >> lane & 1) != 0;
      EXPECT_EQ(any[lane], in_mask ? (positive & mask) != 0 : -1);
      EXPECT_EQ(all[lane], in_mask ? (positive & mask) == mask : -1);
      EXPECT_EQ(ballot[lane], in_mask ? positive & mask : ~0u);
    }
  }
}

TEST_F(HostWarp, MatchesFindEqualLanes) {
  const auto in = inputs<unsigned>();
  const WarpExpression<unsigned> run_any("unsigned", "__match_any_sync(mask, v)");
  const WarpExpression<unsigned> run_all(
      "unsigned", "[&] { int p; unsigned m = __match_all_sync(mask, v, &p); return m * 2 + p; }()");
  const WarpExpression<unsigned> run_same(
      "unsigned", "[&] { int p; unsigned m = __match_all_sync(mask, 7.0, &p); return p == 1 ? m : 0; }()");
  for (const unsigned mask : kMasks) {
    const auto any = run_any(in, mask);
    const auto all = run_all(in, mask);
    const auto same = run_same(in, mask);
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      unsigned equal = 0;
      for (unsigned other = 0; other < 32; ++other) equal |= unsigned{in[other] == in[lane]} << other;
      EXPECT_EQ(any[lane], equal & mask);
      EXPECT_EQ(all[lane], (equal & mask) == mask ? mask * 2 + 1 : 0);
      EXPECT_EQ(same[lane], mask);
    }
  }
}

template <class T>
void expect_reduction(const std::string& type, const std::string& name, const std::function<T(T, T)>& combine) {
  const auto in = inputs<T>();
  const WarpExpression<T> run(type, "__reduce_" + name + "_sync(mask, v)");
  for (const unsigned mask : kMasks) {
    const auto out = run(in, mask);
    T expected = in[static_cast<std::size_t>(std::countr_zero(mask))];
    for (unsigned lane = static_cast<unsigned>(std::countr_zero(mask)) + 1; lane < 32; ++lane) {
      if ((mask >> lane & 1) != 0) expected = combine(expected, in[lane]);
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      EXPECT_EQ(out[lane], expected) << name << " " << type;
    }
  }
}

TEST_F(HostWarp, ReductionsCombineTheMask) {
  expect_reduction<int>("int", "add", [](int a, int b) { return a + b; });
  expect_reduction<int>("int", "min", [](int a, int b) { return std::min(a, b); });
  expect_reduction<int>("int", "max", [](int a, int b) { return std::max(a, b); });
  expect_reduction<unsigned>("unsigned", "add", [](unsigned a, unsigned b) { return a + b; });
  expect_reduction<unsigned>("unsigned", "min", [](unsigned a, unsigned b) { return std::min(a, b); });
  expect_reduction<unsigned>("unsigned", "max", [](unsigned a, unsigned b) { return std::max(a, b); });
  expect_reduction<unsigned>("unsigned", "and", [](unsigned a, unsigned b) { return a & b; });
  expect_reduction<unsigned>("unsigned", "or", [](unsigned a, unsigned b) { return a | b; });
  expect_reduction<unsigned>("unsigned", "xor", [](unsigned a, unsigned b) { return a ^ b; });
}

TEST_F(HostWarp, SyncwarpPublishesToTheWarp) {
  const WarpExpression<int> run(
      "int", "[&] { __shared__ int s[32]; s[lane] = v; __syncwarp(mask); return s[31 - lane]; }()");
  const auto out = run(inputs<int>(), 0xffffffffu);
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], inputs<int>()[31 - lane]);
}

TEST_F(HostWarp, DisjointMasksMeetSeparately) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(int* out) {
  const int lane = threadIdx.x % 32, quarter = lane / 8;
  const unsigned mask = 0xffu << quarter * 8;
  int sum = lane;
  for (int round = 0; round <= quarter; ++round)
    for (int delta = 4; delta > 0; delta /= 2) sum += __shfl_xor_sync(mask, sum, delta, 8);
  if (quarter % 2 == 1) sum = __reduce_add_sync(0xff00ff00u, sum);
  out[threadIdx.x] = __reduce_max_sync(0xffffffffu, sum);
})");
  const DeviceVector<int> out(device, std::vector<int>(96));
  kernel.launch({.block = {96}}, out.data());
  // Quarter q sums to s(q) = 8 · (8 q) + 28 and is multiplied by 8 in each further round.
  const int expected = 8 * (92 * 8 + 220 * 512);
  EXPECT_THAT(out.values(), testing::Each(expected));
}

TEST_F(HostWarp, ActivemaskNamesTheCallerAlone) {
  const auto out = WarpExpression<unsigned>("unsigned", "__activemask()")(inputs<unsigned>(), 0xffffffffu);
  for (std::size_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], 1u << lane);
}

}  // namespace
}  // namespace hone::test
