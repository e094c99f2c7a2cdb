// canonical_reduce.cuh alone: every way to divide the work gives the bits of the plain recursion.
#include "tests/runtime/host_device/host_kernel.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include <hone/canonical_reduce.h>
#include <hone/half.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/reduce/reduction_family.h"
#include "runtime/jit/embedded_sources.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

enum class Pattern { uniform, wide, zeros, subnormal, infinite, opposite_infinities, nan };
constexpr std::array kPatterns{Pattern::uniform,  Pattern::wide,                Pattern::zeros, Pattern::subnormal,
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

/// How a policy's work is divided and finished; `name` is the grid of the first kernel.
struct Division {
  std::string_view name;
  unsigned grid, run_levels;
};

/// The finishes of one policy, as entries of one unit.
class Finishes {
 public:
  Finishes(const Policy& policy, const ReduceSpec& spec, bool has_wide_index)
      : policy_(policy), inputs_(info(spec.op).inputs), device_(make_host_device()) {
    const auto headers = embedded::kernel_templates();
    const OperationSource op = operation_source(spec, has_wide_index);
    const std::string source =
        op.includes + fmt::format("#include \"canonical_reduce.cuh\"\n"
                          "using Op = hone::Canonical<{}>;\n"
                          "using Kernel = hone::CanonicalReduce<Op, hone::{}, hone::Outputs<{}>, {}, {}, {}>;\n",
                          op.type, inputs_ == 2 ? "TwoArrays" : "OneArray", info(spec.result_dtype()).cuda_name,
                          policy.threads, policy.vector_bytes, policy.unroll);
    std::vector<std::string> entries;
    for (const std::string_view body : kBodies)
      entries.push_back(fmt::format("hone::kernel<&Kernel::{}, {}>", body, policy.threads));
    const Unit unit{
        .name = "canonical", .source = source, .headers = {headers.begin(), headers.end()}, .entries = entries};
    module_ = device_->load(device_->compile(unit), entries);
  }

  const std::shared_ptr<Device>& device() const { return device_; }

  /// False if so many spans cannot be divided like that; `arguments` lacks the spans and the workspace.
  bool run(const Division& division, std::size_t chunks, ReduceArguments arguments) const {
    const bool is_one_block = division.name == "none";
    const std::size_t span = std::size_t{policy_.threads / 32} * policy_.unroll << division.run_levels;
    const std::size_t spans = std::max<std::size_t>(1, (chunks + span - 1) / span);
    if (spans > (is_one_block ? 32 : 32 * 4 * policy_.threads)) return false;
    const DeviceVector<double> workspace(device_, std::vector<double>(16 + 4 * spans));
    arguments.workspace = workspace.data();
    arguments.partials = static_cast<unsigned>(spans);
    arguments.run_levels = division.run_levels;
    launch(is_one_block ? 0 : division.name == "last_block" ? 1 : 2, is_one_block ? 1 : division.grid, arguments);
    if (division.name == "publish") launch(3, 1, arguments);
    EXPECT_EQ(workspace.values()[0], 0.0) << "the ticket is left as it was";
    return true;
  }

 private:
  static constexpr std::array<std::string_view, 4> kBodies{"reduce<hone::Grid::none>", "reduce<hone::Grid::last_block>",
                                                           "reduce<hone::Grid::publish>", "finish"};

  void launch(int entry, unsigned grid, const ReduceArguments& arguments) const {
    Launch launch{.grid = {grid, 1, 1}, .block = {policy_.threads, 1, 1}, .dynamic_smem_bytes = 0,
                  .dependent_launch = true, .cluster_blocks = 1, .arguments = {}};
    launch.arguments.push(arguments);
    device_->launch(module_->kernel(entry), launch, nullptr);
  }

  Policy policy_;
  int inputs_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Module> module_;
};

/// Counts the units of a test. Under a sanitizer every third is compiled and tried, or the share of them.
std::size_t units_met = 0;

/// One operation on elements of type In: every policy at every size, with some of the patterns in rotation, each with
/// several of the divisions and offsets.
template <class In>
class CanonicalCheck {
 public:
  explicit CanonicalCheck(const ReduceSpec& spec, bool has_wide_index = false, unsigned most_run_levels = 4)
      : spec_(spec), has_wide_index_(has_wide_index), most_run_levels_(most_run_levels) {}

  void run(std::initializer_list<Policy> policies, const std::vector<std::size_t>& sizes) {
    for (const Policy& policy : policies) {
      if (!in_share(units_met++, kSanitized ? 3 : 1)) continue;
      SCOPED_TRACE(fmt::format("{} threads, {} bytes, unroll {}", policy.threads, policy.vector_bytes, policy.unroll));
      const Finishes finishes(policy, spec_, has_wide_index_);
      for (const std::size_t n : sizes)
        for (int i = 0; i < kPatternsEach; ++i) check(finishes, n, kPatterns[turn_++ % kPatterns.size()]);
    }
  }

 private:
  static constexpr int kPatternsEach = kSanitized ? 1 : 3;

  void check(const Finishes& finishes, std::size_t n, Pattern pattern) {
    std::mt19937 fixed(static_cast<unsigned>(n) + static_cast<unsigned>(pattern));
    std::array<std::vector<In>, 2> arrays;
    for (std::size_t i = 0; i < n; ++i)
      for (int input = 0; input < info(spec_.op).inputs; ++input)
        arrays[static_cast<std::size_t>(input)].push_back(rounded(element(pattern, i, n, fixed)));
    std::vector<std::byte> expected(result_bytes());
    canonical_reduce(spec_, {arrays[0].data()}, {arrays[1].data()}, static_cast<std::int64_t>(n), expected.data());
    constexpr std::array<std::string_view, 3> kGrids{"none", "last_block", "publish"};
    for (const std::string_view name : kGrids)
      expect(finishes, {name, 1 + any_below(7), any_below(most_run_levels_ + 1)}, any_below(16 / sizeof(In)), arrays,
             expected, pattern);
  }

  void expect(const Finishes& finishes, const Division& division, std::size_t offset,
              const std::array<std::vector<In>, 2>& arrays, const std::vector<std::byte>& expected, Pattern pattern) {
    const std::size_t n = arrays[0].size(), chunk = 2048 / sizeof(In);
    std::array<std::unique_ptr<DeviceVector<In>>, 2> in;
    const DeviceVector<std::byte> out(finishes.device(), std::vector<std::byte>(result_bytes(), std::byte{42}));
    ReduceArguments arguments{.in = {}, .n = n, .workspace = nullptr, .out = {out.data()}, .partials = 0};
    for (std::size_t i = 0; i < static_cast<std::size_t>(info(spec_.op).inputs); ++i) {
      std::vector<In> shifted(offset, rounded(std::nan("")));
      shifted.insert(shifted.end(), arrays[i].begin(), arrays[i].end());
      in[i] = std::make_unique<DeviceVector<In>>(finishes.device(), shifted);
      arguments.in[i] = in[i]->data() + offset;
    }
    if (!finishes.run(division, (n + chunk - 1) / chunk, arguments)) return;
    EXPECT_EQ(out.values(), expected) << fmt::format("{} of {} x {}, pattern {}, offset {}, {}, grid {}, run levels {}",
                                                     name(spec_.op), n, info(spec_.dtype).name,
                                                     static_cast<int>(pattern), offset, division.name, division.grid,
                                                     division.run_levels);
  }

  static In rounded(double value) {
    if constexpr (sizeof(In) >= 4) return static_cast<In>(value);
    else return static_cast<In>(static_cast<float>(value));
  }
  std::size_t result_bytes() const {
    return static_cast<std::size_t>(info(spec_.op).outputs) * info(spec_.result_dtype()).size_bytes;
  }
  unsigned any_below(std::size_t count) { return static_cast<unsigned>(random_() % count); }

  ReduceSpec spec_;
  bool has_wide_index_;
  unsigned most_run_levels_;
  std::size_t turn_ = 0;
  std::mt19937 random_{7};
};

/// Around powers of two and the borders of chunks.
std::vector<std::size_t> sizes(std::size_t chunk, std::size_t longest_chunks) {
  std::vector<std::size_t> sizes{0, 1, 2, 3, 31, 33, chunk / 2 - 1, chunk / 2};
  for (std::size_t chunks = 1; chunks <= longest_chunks; chunks = chunks * 2 + (chunks > 4 ? 1 : 0))
    for (const std::size_t n : {chunks * chunk - 1, chunks * chunk, chunks * chunk + 1}) sizes.push_back(n);
  return sizes;
}

/// Sanitizers are slow, and try a share of the sizes.
constexpr int kShare = kSanitized ? 3 : 1;

TEST(CanonicalReduce, SumsOfF32HaveTheBitsOfTheRecursion) {
  CanonicalCheck<float>({}).run(
      {{128, 16, 1}, {256, 16, 2}, {512, 16, 4}, {1024, 16, 1}, {128, 4, 4}, {256, 8, 2}, {128, 32, 2}, {256, 16, 8}},
      sizes(512, 35 / kShare));
}

TEST(CanonicalReduce, SumsOfManySpansHaveTheBitsOfTheRecursion) {
  CanonicalCheck<float>({}).run({{128, 16, 1}}, {512 * 4 * 40, 512 * 4 * (kSanitized ? 150 : 600) + 77});
}

/// A thread combines up to four partials; more are kept by rounds.
TEST(CanonicalReduce, PartialsOfAnyNumberAreCombinedInTheTree) {
  constexpr std::size_t kSpan = 512 * 4, kAtOnce = 128 * 4;
  CanonicalCheck<float>({}, false, 0)
      .run({{128, 16, 1}}, {kSpan * 129, kSpan * (kAtOnce - 1) + 1, kSpan * kAtOnce + 1});
}

TEST(CanonicalReduce, SumsOfOtherDtypesHaveTheBitsOfTheRecursion) {
  CanonicalCheck<double>({.dtype = DType::f64}).run({{128, 16, 2}, {256, 8, 1}, {128, 32, 4}}, sizes(256, 18 / kShare));
  CanonicalCheck<half>({.dtype = DType::f16})
      .run({{128, 16, 1}, {256, 16, 4}, {128, 8, 2}, {128, 4, 1}, {128, 32, 2}}, sizes(1024, 9 / kShare));
  CanonicalCheck<bfloat16>({.dtype = DType::bf16}).run({{128, 16, 2}}, sizes(1024, 6 / kShare));
  CanonicalCheck<float8_e4m3fn>({.dtype = DType::f8e4m3})
      .run({{128, 16, 1}, {128, 16, 2}, {128, 4, 1}}, sizes(2048, 6 / kShare));
  CanonicalCheck<std::int8_t>({.op = ReduceOp::mean, .dtype = DType::i8, .accumulator = DType::f32})
      .run({{128, 16, 1}}, sizes(2048, 6 / kShare));
}

TEST(CanonicalReduce, OtherOperationsHaveTheBitsOfTheRecursion) {
  for (const NanPolicy nan : {NanPolicy::propagate, NanPolicy::ignore})
    for (const ReduceOp op : {ReduceOp::mean, ReduceOp::product, ReduceOp::sum_of_squares, ReduceOp::l1_norm,
                              ReduceOp::l2_norm, ReduceOp::dot, ReduceOp::mean_variance, ReduceOp::logsumexp})
      CanonicalCheck<float>({.op = op, .nan = nan}).run({{128, 16, 2}}, {0, 1, 5, 511, 512, 513, 3000, 30000});
}

TEST(CanonicalReduce, MomentsAndLogsumexpOfOtherDtypesHaveTheBitsOfTheRecursion) {
  for (const ReduceOp op : {ReduceOp::mean_variance, ReduceOp::logsumexp}) {
    CanonicalCheck<double>({.op = op, .dtype = DType::f64}).run({{128, 16, 1}}, {1, 5, 257, 6000});
    CanonicalCheck<half>({.op = op, .dtype = DType::f16}).run({{128, 16, 1}, {128, 4, 1}}, {1, 5, 1023, 9000});
  }
}

TEST(CanonicalReduce, WideIndicesGiveTheSameBits) {
  CanonicalCheck<float>({}, true).run({{128, 16, 2}}, {0, 1, 513, 100000});
}

}  // namespace
}  // namespace hone::test
