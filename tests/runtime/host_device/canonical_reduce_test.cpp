// canonical_reduce.cuh alone: every way to divide the work gives the bits of the plain recursion.
#include "tests/runtime/host_device/host_kernel.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <hone/half.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/jit/embedded_sources.h"

namespace hone::test {
namespace {

/// What one element contributes, and how contributions combine.
template <class Acc>
struct Definition {
  Acc (*leaf)(Acc a, Acc b);
  Acc (*combine)(Acc a, Acc b);
  Acc (*result)(Acc root, std::size_t n);
  bool ignores_nan = false;
};

/// The definition of the tree, without representing what is absent.
template <class Acc>
class Recursion {
 public:
  Recursion(const Definition<Acc>& op, std::vector<std::optional<Acc>> leaves, std::size_t chunk)
      : op_(op), leaves_(std::move(leaves)), chunk_(chunk) {}

  Acc result() const {
    const std::size_t chunks = (leaves_.size() + chunk_ - 1) / chunk_;
    const std::optional<Acc> root = chunks == 0 ? std::nullopt : tree(0, chunks);
    const Acc neutral = op_.combine(Acc(1), Acc(1)) == Acc(1) ? Acc(1) : Acc(0);
    const Acc result = op_.result(root.value_or(neutral), leaves_.size());
    return result != result ? std::numeric_limits<Acc>::quiet_NaN() : result;
  }

 private:
  std::optional<Acc> both(std::optional<Acc> a, std::optional<Acc> b) const {
    return !a ? b : !b ? a : std::optional(op_.combine(*a, *b));
  }

  /// Chunks first … first + count, split at the largest power of two below count.
  std::optional<Acc> tree(std::size_t first, std::size_t count) const {
    if (count == 1) return chunk(first * chunk_);
    const std::size_t left = std::bit_floor(count - 1);
    return both(tree(first, left), tree(first + left, count - left));
  }

  std::optional<Acc> chunk(std::size_t first) const {
    std::vector<std::optional<Acc>> v(chunk_);
    for (std::size_t r = 0; r < chunk_ && first + r < leaves_.size(); ++r) v[r] = leaves_[first + r];
    for (std::size_t s = chunk_ / 2; s > 0; s /= 2)
      for (std::size_t r = 0; r < s; ++r) v[r] = both(v[r], v[r + s]);
    return v[0];
  }

  Definition<Acc> op_;
  std::vector<std::optional<Acc>> leaves_;
  std::size_t chunk_;
};

template <class Acc>
Acc plus(Acc a, Acc b) { return a + b; }
template <class Acc>
Acc plus_zero(Acc root, std::size_t) { return root + Acc(0); }

template <class Acc>
const Definition<Acc> kSum{[](Acc a, Acc) { return a; }, plus<Acc>, plus_zero<Acc>};
template <class Acc>
const Definition<Acc> kSquares{[](Acc a, Acc) { return a * a; }, plus<Acc>, plus_zero<Acc>};
template <class Acc>
const Definition<Acc> kProduct{[](Acc a, Acc) { return a; }, [](Acc a, Acc b) { return a * b; },
                               [](Acc root, std::size_t) { return root; }};
template <class Acc>
const Definition<Acc> kL2{[](Acc a, Acc) { return a * a; }, plus<Acc>,
                          [](Acc root, std::size_t) { return std::sqrt(root + Acc(0)); }};
template <class Acc>
const Definition<Acc> kL1{[](Acc a, Acc) { return std::abs(a); }, plus<Acc>, plus_zero<Acc>};
template <class Acc>
const Definition<Acc> kMean{[](Acc a, Acc) { return a; }, plus<Acc>,
                            [](Acc root, std::size_t n) { return (root + Acc(0)) / static_cast<Acc>(n); }};
template <class Acc>
const Definition<Acc> kDot{[](Acc a, Acc b) { return a * b; }, plus<Acc>, plus_zero<Acc>};
template <class Acc>
const Definition<Acc> kSumOfNumbers{[](Acc a, Acc) { return a; }, plus<Acc>, plus_zero<Acc>, true};

enum class Pattern { uniform, wide, zeros, subnormal, infinite, opposite_infinities, nan };
constexpr std::array kPatterns{Pattern::uniform,  Pattern::wide, Pattern::zeros, Pattern::subnormal,
                               Pattern::infinite, Pattern::opposite_infinities, Pattern::nan};

/// An element of the pattern, before it is rounded to its type.
double element(Pattern pattern, std::size_t i, std::size_t n, std::mt19937& random) {
  const double unit = std::uniform_real_distribution<double>(-1, 1)(random);
  switch (pattern) {
    case Pattern::uniform: return unit;
    case Pattern::wide: return std::ldexp(unit, static_cast<int>(random() % 70) - 35);
    case Pattern::zeros: return random() % 64 == 0 ? 0.0 : -0.0;
    case Pattern::subnormal: return std::ldexp(unit, -140);
    case Pattern::infinite: return i == n / 3 ? -HUGE_VAL : unit;
    case Pattern::opposite_infinities: return i == n / 3 ? -HUGE_VAL : i == n / 2 ? HUGE_VAL : unit;
    case Pattern::nan: return i % 701 == 5 ? std::nan("") : unit;
  }
  return 0;
}

struct Policy {
  unsigned threads, vector_bytes, unroll;
};

std::string describe(const Policy& policy) {
  return fmt::format("{} threads, {} bytes, unroll {}", policy.threads, policy.vector_bytes, policy.unroll);
}

/// The finishes of one policy, as entries of one unit.
class Finishes {
 public:
  Finishes(const Policy& policy, std::string_view op, std::string_view element, std::string_view acc, int arrays)
      : policy_(policy), device_(make_host_device()) {
    const auto headers = embedded::kernel_templates();
    const std::string source = fmt::format(
        "#include \"canonical_reduce.cuh\"\n"
        "using Op = hone::Canonical<hone::OperationOn<hone::{}>::type>;\n"
        "using Kernel = hone::CanonicalReduce<Op, hone::{}, hone::Outputs<{}>, {}, {}, {}>;\n",
        fmt::format(fmt::runtime(op), element, acc), arrays == 2 ? "TwoArrays" : "OneArray", acc, policy.threads,
        policy.vector_bytes, policy.unroll);
    std::vector<std::string> entries;
    for (const char* body : {"reduce<hone::Grid::none>", "reduce<hone::Grid::last_block>", "reduce<hone::Grid::publish>",
                             "finish"})
      entries.push_back(fmt::format("hone::kernel<&Kernel::{}, {}>", body, policy.threads));
    const Unit unit{.name = "canonical", .source = source, .headers = {headers.begin(), headers.end()},
                    .entries = entries};
    module_ = device_->load(device_->compile(unit), entries);
  }

  const std::shared_ptr<Device>& device() const { return device_; }

  /// Runs one finish, or none if it cannot have so many spans; `arguments` lacks the spans and the workspace.
  bool run(int finish, unsigned grid, unsigned run_levels, std::size_t chunks, ReduceArguments arguments) const {
    const std::size_t span = std::size_t{policy_.threads / 32} * policy_.unroll << run_levels;
    const std::size_t spans = std::max<std::size_t>(1, (chunks + span - 1) / span);
    if (spans > (finish == 0 ? 32 : 32 * 4 * policy_.threads)) return false;
    const DeviceVector<double> workspace(device_, std::vector<double>(16 + spans));
    arguments.workspace = workspace.data();
    arguments.partials = static_cast<unsigned>(spans);
    arguments.run_levels = run_levels;
    launch(finish, finish == 0 ? 1 : grid, arguments);
    if (finish == 2) launch(3, 1, arguments);
    EXPECT_EQ(workspace.values()[0], 0.0) << "the ticket is left as it was";
    return true;
  }

 private:
  void launch(int entry, unsigned grid, const ReduceArguments& arguments) const {
    Launch launch{.grid = {grid, 1, 1}, .block = {policy_.threads, 1, 1}, .dynamic_smem_bytes = 0,
                  .dependent_launch = true, .cluster_blocks = 1, .arguments = {}};
    launch.arguments.push(arguments);
    device_->launch(module_->kernel(entry), launch, nullptr);
  }

  Policy policy_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Module> module_;
};

/// One operation on elements of type In: every policy, finish, offset and pattern, with grids and runs at random.
template <class In, class Acc>
class CanonicalCheck {
 public:
  CanonicalCheck(const Definition<Acc>& definition, std::string_view op, std::string_view element,
                 std::string_view acc, int arrays = 1)
      : definition_(definition), op_(op), element_(element), acc_(acc), arrays_(arrays) {}

  void run(std::initializer_list<Policy> policies, std::vector<std::size_t> sizes) {
    for (const Policy& policy : policies) {
      SCOPED_TRACE(describe(policy));
      const Finishes finishes(policy, op_, element_, acc_, arrays_);
      for (const std::size_t n : sizes)
        for (const Pattern pattern : kPatterns) check(finishes, n, pattern);
    }
  }

 private:
  static constexpr std::size_t kChunk = 2048 / sizeof(In);
  static constexpr std::size_t kOffsets = 16 / sizeof(In) == 0 ? 1 : 16 / sizeof(In);

  void check(const Finishes& finishes, std::size_t n, Pattern pattern) {
    std::mt19937 fixed(static_cast<unsigned>(n) + static_cast<unsigned>(pattern));
    std::array<std::vector<In>, 2> arrays;
    std::vector<std::optional<Acc>> leaves;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::vector<In>& array : arrays)
        array.push_back(static_cast<In>(static_cast<Acc>(element(pattern, i, n, fixed))));
      const Acc a = static_cast<Acc>(arrays[0].back()), b = static_cast<Acc>(arrays[1].back());
      const bool is_absent = definition_.ignores_nan && std::isnan(a);
      leaves.push_back(is_absent ? std::nullopt : std::optional(definition_.leaf(a, b)));
    }
    const Acc expected = Recursion<Acc>(definition_, std::move(leaves), kChunk).result();
    // Any offset and any finish each time: in all, each meets each.
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::size_t offset = random_() % kOffsets;
      std::array<std::unique_ptr<DeviceVector<In>>, 2> in;
      for (int i = 0; i < arrays_; ++i) {
        std::vector<In> shifted(offset, static_cast<In>(Acc(NAN)));
        shifted.insert(shifted.end(), arrays[static_cast<std::size_t>(i)].begin(), arrays[static_cast<std::size_t>(i)].end());
        in[static_cast<std::size_t>(i)] = std::make_unique<DeviceVector<In>>(finishes.device(), shifted);
      }
      const DeviceVector<Acc> out(finishes.device(), {Acc(42)});
      ReduceArguments arguments{.in = {}, .n = n, .workspace = nullptr, .out = {out.data()}, .partials = 0,
                                .run_levels = 0};
      for (int i = 0; i < arrays_; ++i) arguments.in[i] = in[static_cast<std::size_t>(i)]->data() + offset;
      const int finish = static_cast<int>(random_() % 3);
      const auto grid = static_cast<unsigned>(1 + random_() % 7), run_levels = static_cast<unsigned>(random_() % 5);
      if (!finishes.run(finish, grid, run_levels, (n + kChunk - 1) / kChunk, arguments)) continue;
      const Acc found = out.values()[0];
      EXPECT_EQ(std::memcmp(&found, &expected, sizeof(Acc)), 0)
          << fmt::format("{} of {} x {}, pattern {}, offset {}, finish {}, grid {}, run levels {}: {} instead of {}",
                         op_, n, element_, static_cast<int>(pattern), offset, finish, grid, run_levels, found, expected);
    }
  }

  Definition<Acc> definition_;
  std::string_view op_, element_, acc_;
  int arrays_;
  std::mt19937 random_{7};
};

constexpr std::string_view kF32Sum = "Sum, {}, {}, unsigned, false";

/// Around powers of two and the borders of chunks.
std::vector<std::size_t> sizes(std::size_t chunk, std::size_t longest_chunks) {
  std::vector<std::size_t> sizes{0, 1, 2, 3, 31, 33, chunk / 2 - 1, chunk / 2};
  for (std::size_t chunks = 1; chunks <= longest_chunks; chunks = chunks * 2 + (chunks > 4 ? 1 : 0))
    for (const std::size_t n : {chunks * chunk - 1, chunks * chunk, chunks * chunk + 1}) sizes.push_back(n);
  return sizes;
}

TEST(CanonicalReduce, SumsOfF32HaveTheBitsOfTheRecursion) {
  CanonicalCheck<float, float>(kSum<float>, kF32Sum, "float", "float")
      .run({{128, 16, 1}, {256, 16, 2}, {512, 16, 4}, {1024, 16, 1}, {128, 4, 4}, {256, 8, 2}, {128, 32, 2}, {256, 16, 8}},
           sizes(512, 70));
}

TEST(CanonicalReduce, SumsOfManySpansHaveTheBitsOfTheRecursion) {
  CanonicalCheck<float, float>(kSum<float>, kF32Sum, "float", "float").run({{128, 16, 1}}, {512 * 4 * 40, 512 * 4 * 600 + 77});
}

TEST(CanonicalReduce, SumsOfF64AndF16HaveTheBitsOfTheRecursion) {
  CanonicalCheck<double, double>(kSum<double>, kF32Sum, "double", "double")
      .run({{128, 16, 2}, {256, 8, 1}, {128, 32, 4}}, sizes(256, 35));
  CanonicalCheck<half, float>(kSum<float>, kF32Sum, "hone::Half", "float")
      .run({{128, 16, 1}, {256, 16, 4}, {128, 8, 2}, {128, 4, 1}, {128, 32, 2}}, sizes(1024, 20));
  CanonicalCheck<bfloat16, float>(kSum<float>, kF32Sum, "hone::BFloat16", "float").run({{128, 16, 2}}, sizes(1024, 5));
  CanonicalCheck<float8_e4m3fn, float>(kSum<float>, kF32Sum, "hone::E4M3", "float")
      .run({{128, 16, 1}, {128, 16, 2}, {128, 4, 1}}, sizes(2048, 5));
}

TEST(CanonicalReduce, OtherOperationsHaveTheBitsOfTheRecursion) {
  const auto check = [](const Definition<float>& definition, std::string_view op, int arrays = 1) {
    CanonicalCheck<float, float>(definition, op, "float", "float", arrays)
        .run({{128, 16, 2}}, {0, 1, 5, 511, 512, 513, 3000, 30000});
  };
  check(kSquares<float>, "SumOfSquares, {}, {}, unsigned, false");
  check(kProduct<float>, "Product, {}, {}, unsigned, false");
  check(kL1<float>, "L1Norm, {}, {}, unsigned, false");
  check(kL2<float>, "L2Norm, {}, {}, unsigned, false");
  check(kMean<float>, "Mean, {}, {}, unsigned, false");
  check(kDot<float>, "Dot, {}, {}, unsigned, false", 2);
  check(kSumOfNumbers<float>, "Sum, {}, {}, unsigned, true");
}

TEST(CanonicalReduce, WideIndicesGiveTheSameBits) {
  CanonicalCheck<float, float>(kSum<float>, "Sum, {}, {}, unsigned long long, false", "float", "float")
      .run({{128, 16, 2}}, {0, 1, 513, 100000});
}

}  // namespace
}  // namespace hone::test
