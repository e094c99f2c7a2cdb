// Combine of combine.cuh alone: every level that the host device has, one output and several, in several orders of
// threads and blocks, so that a missing barrier changes a result.
#include "tests/runtime/host_device/host_kernel.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "runtime/jit/embedded_sources.h"
#include "tests/runtime/support/long_under_sanitizers.h"

namespace hone::test {
namespace {

constexpr unsigned kOutputs = 5;  ///< one after the other, so that a buffer that is reused too early shows

/// An operation that is an object: sums modulo a number that is known at run time.
constexpr char kSource[] = R"(
#include "canonical_tree.cuh"
#include "combine.cuh"
#include "reduce_ops.cuh"

struct SumModulo {{
  using State = unsigned;
  static constexpr auto kWarpInstruction = hone::WarpInstruction::none;
  unsigned modulus;
  unsigned identity() const {{ return 0; }}
  unsigned combine(unsigned a, unsigned b) const {{ return (a + b) % modulus; }}
  template <unsigned kLanes> unsigned of_lanes(unsigned state) const {{
    for (unsigned step = kLanes / 2; step > 0; step /= 2) state = combine(state, hone::shuffle_down(state, step));
    return state;
  }}
  template <unsigned kLanes> unsigned in_all_lanes(unsigned state) const {{
    for (unsigned step = kLanes / 2; step > 0; step /= 2) state = combine(state, hone::shuffle_xor(state, step));
    return state;
  }}
}};
using Sum = hone::Sum<int, unsigned, unsigned, false>;

/// Every order of combination has a result of its own.
template <bool kFast>
struct Ordered : hone::Reduction<Ordered<kFast>, int, unsigned, unsigned> {{
  static constexpr bool kCombinesFast = kFast;
  static unsigned identity() {{ return 1; }}
  static unsigned combine(unsigned a, unsigned b) {{ return 31 * a + 17 * b + a * b; }}
}};
using Folded = Ordered<true>;
using Shuffled = Ordered<false>;

/// The same as a tree that begins with neighbours.
struct OrderedTree : Ordered<false> {{
  static constexpr bool kByChunk = true;
  static unsigned absent() {{ return identity(); }}
}};
template <bool kFast>
struct Tree : hone::CanonicalCombine<OrderedTree> {{
  static constexpr bool kCombinesFast = kFast;
}};
using FoldedTree = Tree<true>;
using ShuffledTree = Tree<false>;
using Max = hone::Max<int, int, unsigned, false>;

extern "C" __global__ void entry(unsigned* out, void* workspace, unsigned outputs, unsigned modulus) {{
  using Op = {op};
  hone::Combine<Op, {threads}, 1, hone::Grid::{grid}, {repeats}, hone::Tail::{tail}> combine{make};
  for (unsigned number = 0; number < outputs; ++number) {{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    Op::State state = (number + 1) * thread;
    unsigned* const to = out + number * gridDim.x * blockDim.x + thread / {threads} * {threads} + combine.rank();
    {call};
  }}
}}
)";

struct Case {
  unsigned threads;  ///< that share an output
  std::string grid = "none";
  std::string tail = "warp";
  std::string op = "Sum";
  bool to_all = false;
};

constexpr unsigned kBlockThreads = 128;
constexpr unsigned kModulus = 97;
constexpr unsigned kUnwritten = ~0u;

Binary compile(const Case& each, unsigned outputs) {
  const auto headers = embedded::kernel_templates();
  const std::string source = fmt::format(
      kSource, fmt::arg("op", each.op), fmt::arg("threads", each.threads), fmt::arg("grid", each.grid),
      fmt::arg("repeats", outputs > 1), fmt::arg("tail", each.tail),
      fmt::arg("make", each.op == "SumModulo" ? "(Op{modulus})" : ""),
      fmt::arg("call", each.to_all ? "*to = combine.to_all(state)"
                                   : "if (combine.to_first(state, workspace, blockIdx.x)) *to = state"));
  return make_host_device()->compile({"test unit", source, {headers.begin(), headers.end()}, {"entry"}});
}

std::vector<unsigned> run(const Binary& binary, unsigned outputs, HostOrder order,
                          unsigned block_threads = kBlockThreads) {
  const auto device = make_host_device(HostOptions{.sm_count = 1, .compiler = {}, .order = order});
  const HostKernel kernel(device, binary);
  const DeviceVector<unsigned> out(device, std::vector<unsigned>(outputs * 3 * block_threads, kUnwritten));
  const DeviceVector<unsigned> workspace(device, std::vector<unsigned>(64));
  kernel.launch({.grid = {3}, .block = {block_threads}}, out.data(), static_cast<void*>(workspace.data()), outputs,
                kModulus);
  EXPECT_EQ(workspace.values()[0], 0u) << "the ticket is left as it was";
  return out.values();
}

/// The sum, or the maximum, of what the threads of one output have; and in which threads it is to be found.
std::vector<unsigned> expected(const Case& each, unsigned outputs) {
  const unsigned all = 3 * 128;
  std::vector<unsigned> results(outputs * all, kUnwritten);
  for (unsigned number = 0; number < outputs; ++number)
    for (unsigned first = 0; first < all; first += each.threads) {
      unsigned sum = 0;
      for (unsigned t = first; t < first + each.threads; ++t) sum += (number + 1) * t;
      if (each.op == "Max") sum = (number + 1) * (first + each.threads - 1);
      if (each.op == "SumModulo") sum %= kModulus;
      const unsigned getting = each.to_all ? each.threads : 1;
      for (unsigned t = first; t < first + getting; ++t) results[number * all + t] = sum;
    }
  return results;
}

constexpr HostOrder kOrders[] = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 12345}};

void expect_results(const Case& each) {
  for (const unsigned outputs : {1u, kOutputs}) {
    const Binary binary = compile(each, outputs);
    for (const HostOrder& order : kOrders)
      EXPECT_EQ(run(binary, outputs, order), expected(each, outputs))
          << each.op << " of " << each.threads << " threads, " << outputs << " outputs, tail " << each.tail;
  }
}

using Combine = LongUnderSanitizers;

TEST_F(Combine, OfLanesIsInTheFirstOfThem) {
  for (const unsigned lanes : {1u, 4u, 32u}) expect_results({.threads = lanes});
  expect_results({.threads = 32, .op = "Max"});  // by one instruction
}

TEST_F(Combine, OfABlockIsInItsFirstThread) {
  expect_results({.threads = 128});
  expect_results({.threads = 128, .op = "Max"});
  expect_results({.threads = 128, .tail = "shared"});
  expect_results({.threads = 128, .op = "SumModulo"});
}

/// So results do not depend on which of the two the compiler was told to do.
TEST_F(Combine, WarpsAreFoldedInTheOrderOfTheirShuffles) {
  for (const unsigned threads : {64u, 128u, 256u, 512u, 1024u})
    for (const std::string tree : {"", "Tree"})
      for (const unsigned outputs : {1u, 2u}) {
        if (!tree.empty() && outputs > 1) continue;  // only one is made of a tree at a time
        const auto results = [&](const std::string& op) {
          return run(compile({.threads = threads, .op = op + tree}, outputs), outputs, {}, threads);
        };
        const std::vector<unsigned> folded = results("Folded");
        EXPECT_EQ(folded, results("Shuffled")) << threads << " threads, " << outputs << " outputs " << tree;
        EXPECT_EQ(std::count(folded.begin(), folded.end(), kUnwritten), outputs * 3 * (threads - 1));
      }
}

TEST_F(Combine, ToAllReachesEveryThreadThatSharesTheOutput) {
  for (const unsigned threads : {1u, 8u, 128u}) expect_results({.threads = threads, .to_all = true});
  expect_results({.threads = 128, .op = "SumModulo", .to_all = true});
}

/// The order of blocks decides which one is the last; the result is in its first thread, whichever that is.
TEST_F(Combine, OfAGridIsInTheLastBlock) {
  for (const std::string tail : {"warp", "shared"}) {
    const Binary binary = compile({.threads = 128, .grid = "last_block", .tail = tail}, 1);
    for (const HostOrder& order : kOrders) {
      std::vector<unsigned> results = run(binary, 1, order);
      std::erase(results, kUnwritten);
      EXPECT_THAT(results, testing::ElementsAre(384u * 383 / 2));
    }
  }
}

/// More of them than the threads of a block load at once.
TEST_F(Combine, EveryPublishedPartialCounts) {
  for (const unsigned partials : {1u, 7u, 32u, 130u, 300u}) {
    constexpr char kSum[] = R"(
#include "combine.cuh"
#include "reduce_ops.cuh"
using Sum = hone::Sum<int, unsigned, unsigned, false>;
extern "C" __global__ void entry(unsigned* out, const unsigned* partials, unsigned count) {
  out[threadIdx.x] = hone::combine_published<Sum>(partials, threadIdx.x, count, blockDim.x, 2);
})";
    const auto headers = embedded::kernel_templates();
    const auto device = make_host_device();
    const HostKernel kernel(device, device->compile({"test unit", kSum, {headers.begin(), headers.end()}, {"entry"}}));
    std::vector<unsigned> values(2 * partials, 1000000);  // every second one is a partial
    for (unsigned p = 0; p < partials; ++p) values[2 * p] = p + 1;
    const DeviceVector<unsigned> of_blocks(device, values), out(device, std::vector<unsigned>(32));
    kernel.launch({.block = {32}}, out.data(), of_blocks.data(), partials);
    const std::vector<unsigned> sums = out.values();
    EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0u), partials * (partials + 1) / 2) << partials;
  }
}

TEST_F(Combine, PublishedPartialsAreNoResults) {
  const Binary binary = compile({.threads = 128, .grid = "publish"}, 1);
  EXPECT_THAT(run(binary, 1, {}), testing::Each(kUnwritten));
}

}  // namespace
}  // namespace hone::test
