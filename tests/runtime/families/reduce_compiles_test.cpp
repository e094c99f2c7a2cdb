// Compiles units of the reduce family with NVRTC and reads what ptxas made of them.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <hone/custom_reduce.h>
#include <hone/error.h>
#include <hone/fused_reduce.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>

#include "runtime/choose/compiled.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "runtime/jit/cubin_resources.h"
#include "runtime/jit/nvrtc_compiler.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/share.h"

namespace hone {
namespace {

constexpr std::string_view kArchitecture = "sm_90";

class UnitsCompile : public testing::Test {
 protected:
  void SetUp() override {
    if (compiler_.identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
  }

  /// Compiles on all cores. An error fails the test, and so does it when more than a few units spill (one in ten, or
  /// two of a small sample): tiles that are too large for the registers belong among those that the family rejects.
  /// `turn` is that of the first unit.
  void compile_all(const std::vector<Unit>& all, std::size_t turn = 0) {
    std::vector<Unit> units;
    for (const Unit& unit : all)
      if (test::in_share(turn++)) units.push_back(unit);
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < units.size(); i = next++) {
        const std::string fault = fault_of(units[i]);
        const std::scoped_lock lock(mutex_);
        if (!fault.empty()) ADD_FAILURE() << units[i].name << ": " << fault;
      }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
    threads.clear();
    EXPECT_LE(spilling_.load(), std::max<std::size_t>(2, units.size() / 10)) << spilled_;
  }

  /// The resources of the first kernel.
  Resources resources_of(const Unit& unit) const {
    const Binary binary = compiler_.compile(unit, kArchitecture);
    return cubin_resources(binary.code, binary.entries.at(0)).value();
  }

 private:
  std::string fault_of(const Unit& unit) {
    try {
      const Binary binary = compiler_.compile(unit, kArchitecture);
      for (const std::string& symbol : binary.entries) {
        const std::optional<Resources> resources = cubin_resources(binary.code, symbol);
        if (!resources) return fmt::format("no kernel {} in the cubin", symbol);
        if (resources->local_bytes > kMostCallFrameBytes) {
          ++spilling_;
          const std::scoped_lock lock(mutex_);
          spilled_ += fmt::format("{}: {} bytes\n", unit.name, resources->local_bytes);
        }
      }
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  static constexpr int kMostCallFrameBytes = 64;

  std::atomic<std::size_t> spilling_{0};
  std::string spilled_;
  NvrtcCompiler compiler_{NvrtcSearch::from_environment()};
  std::mutex mutex_;
};

/// Instructions of 128 bits (sm_70 and later) in the code of a cubin, by the lowest nine bits of their opcode.
struct Opcodes {
  static constexpr unsigned kFfma = 0x023, kDfma = 0x02b, kHfma2 = 0x031;

  std::map<unsigned, int> counts;
  int flushing = 0;  ///< additions and products of f32 that flush subnormal numbers

  explicit Opcodes(const std::vector<std::byte>& cubin) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(cubin.data());
    Elf64_Ehdr header;
    std::memcpy(&header, bytes, sizeof(header));
    for (unsigned section = 0; section < header.e_shnum; ++section) {
      Elf64_Shdr code;
      std::memcpy(&code, bytes + header.e_shoff + section * sizeof(code), sizeof(code));
      if (code.sh_type != SHT_PROGBITS || (code.sh_flags & SHF_EXECINSTR) == 0) continue;
      for (std::size_t at = 0; at + 16 <= code.sh_size; at += 16) {
        std::array<std::uint64_t, 2> word;
        std::memcpy(word.data(), bytes + code.sh_offset + at, sizeof(word));
        const unsigned opcode = word[0] & 0x1ff;
        ++counts[opcode];
        if ((opcode == 0x020 || opcode == 0x021) && (word[1] >> 16 & 1) != 0) ++flushing;  // FMUL, FADD
      }
    }
  }
  int fused() const { return of(kFfma) + of(kDfma) + of(kHfma2); }

 private:
  int of(unsigned opcode) const {
    const auto found = counts.find(opcode);
    return found == counts.end() ? 0 : found->second;
  }
};

/// NVRTC contracts a·b + c by default, and does so in fast mode, which shows that contractions would be seen.
TEST_F(UnitsCompile, ReproducibleSumsAreNeverContractedAndKeepSubnormalNumbers) {
  NvrtcCompiler compiler(NvrtcSearch::from_environment());
  std::size_t turn = 0;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::dot, ReduceOp::sum_of_squares, ReduceOp::l1_norm})
    for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
      if (!test::in_share(turn++)) continue;
      for (const Numerics numerics : {Numerics::fast, Numerics::reproducible}) {
        const Problem problem = reduce_problem({.op = op, .dtype = dtype, .numerics = numerics}, 1 << 20);
        const std::vector<Policy> allowed = allowed_policies(problem, h100_facts());
        const Opcodes opcodes(compiler.compile(unit_of(problem, allowed.front()), kArchitecture).code);
        const bool contracts = numerics == Numerics::fast && (op == ReduceOp::dot || op == ReduceOp::sum_of_squares);
        EXPECT_EQ(opcodes.fused() > 0, contracts) << to_string(problem);
        EXPECT_EQ(opcodes.flushing, 0) << to_string(problem);
      }
    }
  const ReduceSpec squares{.op = ReduceOp::sum_of_squares, .numerics = Numerics::reproducible};
  for (const Problem& problem : {reduce_rows_problem(squares, {1000, 1000}),
                                 reduce_columns_problem(squares, {.reduced = 3000, .inner = 1000})}) {
    if (!test::in_share(turn++)) continue;
    const Policy policy = allowed_policies(problem, h100_facts()).front();
    const Opcodes opcodes(compiler.compile(unit_of(problem, policy), kArchitecture).code);
    EXPECT_EQ(opcodes.fused() + opcodes.flushing, 0) << to_string(problem);
  }
}

class ReduceCompiles : public UnitsCompile, public testing::WithParamInterface<ReduceOp> {};

constexpr std::size_t kPoliciesOfAPair = 1;

/// Some of the policies that remain. Turns 0, 1, … walk through all of them in steps that share no factor with the
/// lengths of the value lists, so that neighbours differ in every parameter.
std::vector<Policy> some_policies(const Problem& problem, std::size_t turn, std::size_t count = kPoliciesOfAPair) {
  const std::vector<Policy> allowed = allowed_policies(problem, h100_facts());
  std::vector<Policy> some;
  for (std::size_t i = 0; i < std::min(count, allowed.size()); ++i)
    some.push_back(allowed[(turn * count + i) * 31 % allowed.size()]);
  return some;
}

void add_units(std::vector<Unit>& units, const Problem& problem, std::size_t turn) {
  for (const Policy& policy : some_policies(problem, turn)) units.push_back(unit_of(problem, policy));
}

/// One problem for each dtype of the operation, with its turn.
std::vector<std::pair<Problem, std::size_t>> turns_of(ReduceOp op) {
  std::vector<std::pair<Problem, std::size_t>> turns;
  for (const DTypeInfo& dtype : kDTypes)
    if (reduce_supports(op, dtype.dtype))
      turns.emplace_back(reduce_problem(op, dtype.dtype, 1 << 20),
                         static_cast<std::size_t>(op) * kDTypes.size() + static_cast<std::size_t>(dtype.dtype));
  return turns;
}

TEST_P(ReduceCompiles, ForEveryDTypeAndHardlyAnyUnitSpills) {
  std::vector<Unit> units;
  for (const auto& [problem, turn] : turns_of(GetParam())) add_units(units, problem, turn);
  compile_all(units, static_cast<std::size_t>(GetParam()));
}

/// Any two values that occur together in a policy.
std::set<std::array<std::int32_t, 4>> pairs_of_values(const std::vector<Policy>& policies) {
  std::set<std::array<std::int32_t, 4>> pairs;
  for (const Policy& policy : policies)
    for (int i = 0; i < policy.size(); ++i)
      for (int j = 0; j < i; ++j) pairs.insert({i, policy[i], j, policy[j]});
  return pairs;
}

TEST(ReduceUnits, ThatAreCompiledHaveEveryPairOfValues) {
  std::vector<Policy> compiled, allowed;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const auto& [problem, turn] : turns_of(op.op)) {
      for (const Policy& policy : some_policies(problem, turn)) compiled.push_back(policy);
      for (const Policy& policy : allowed_policies(problem, h100_facts())) allowed.push_back(policy);
    }
  EXPECT_EQ(pairs_of_values(compiled), pairs_of_values(allowed));
}

TEST_P(ReduceCompiles, WithWideIndices) {
  std::vector<Unit> units;
  add_units(units, reduce_problem(GetParam(), DType::f32, std::int64_t{1} << 32), static_cast<std::size_t>(GetParam()));
  compile_all(units, static_cast<std::size_t>(GetParam()));
}

TEST_F(UnitsCompile, ForSegmentsOfEveryOperationWithSeveralDTypes) {
  std::vector<Unit> units;
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype) || ++turn % 8 != 0) continue;
      const bool is_wide = turn % 3 == 0;
      const Problem problem =
          segmented_reduce_problem({.op = op.op, .dtype = dtype.dtype}, is_wide ? DType::i64 : DType::i32, 1 << 20,
                                   std::int64_t{1} << (is_wide ? 32 : 25));
      const std::vector<Policy> policies = allowed_policies(problem, {});
      units.push_back(unit_of(problem, policies[5 * turn / 8 % policies.size()]));
    }
  compile_all(units);
}

TEST_F(UnitsCompile, ForFusedReductionsOfEveryDType) {
  const FusedReduction fused{ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean};
  std::vector<Unit> units;
  for (const DTypeInfo& dtype : kDTypes)
    add_units(units, fused.problem(dtype.dtype, 1 << 20), static_cast<std::size_t>(dtype.dtype));
  compile_all(units);
}

TEST_F(UnitsCompile, ForExpressionsAndTheirReference) {
  const CustomReduction cubes({.name = "cubes", .map = "Acc(x) * x * x", .combine = "a + b", .identity = "0"},
                              DType::f64);
  std::vector<Unit> units;
  for (DType dtype : {DType::f16, DType::f32, DType::i8, DType::boolean})
    add_units(units, cubes.problem(dtype, 1 << 20), static_cast<std::size_t>(dtype));
  const Problem problem = cubes.problem(DType::bf16, std::int64_t{1} << 32);
  units.push_back(problem.family->verifier().reference_unit(problem));
  units.back().headers.assign(problem.family->sources().begin(), problem.family->sources().end());
  compile_all(units);
}

/// Shapes for which threads share the work in every way; each has one of its policies, in turns.
TEST_F(UnitsCompile, ForRowsAndColumnsInEveryWay) {
  DeviceFacts facts;
  facts.sm_count = 132;
  facts.max_cluster_blocks = 8;
  std::vector<Unit> units;
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DTypeInfo& dtype : kDTypes) {
      if (op.inputs != 1 || !reduce_supports(op.op, dtype.dtype) || ++turn % 7 != 0) continue;
      // Where no order matters, both numerics are the same.
      const ReduceSpec spec{.op = op.op, .dtype = dtype.dtype,
                            .numerics = turn % 2 == 0 ? Numerics::fast : Numerics::reproducible};
      const Problem problems[] = {
          reduce_rows_problem(spec, {1 << 20, 64}), reduce_columns_problem(spec, {.reduced = 1 << 23, .inner = 8}),
          reduce_rows_problem(spec, {1000003, 7}), reduce_columns_problem(spec, {.reduced = 1 << 10, .inner = 1 << 16}),
          reduce_rows_problem(spec, {31, 1048577}), reduce_columns_problem(spec, {.reduced = 31, .inner = 1048577}),
          reduce_rows_problem(spec, {1 << 10, 1 << 16}), reduce_columns_problem(spec, {1 << 20, 8, 3}),
          reduce_rows_problem(spec, {2, std::int64_t{1} << 32})};
      const Problem& problem = problems[turn / 7 % std::size(problems)];
      const std::vector<Policy> policies = allowed_policies(problem, facts);
      ASSERT_FALSE(policies.empty()) << to_string(problem);
      units.push_back(unit_of(problem, policies[turn * 5 % policies.size()]));
    }
  compile_all(units);
}

/// With double buffering this unit took 79 registers, which leave an SM 768 threads.
TEST_F(UnitsCompile, LogsumexpOfColumnsOfTwoTilesLeavesRegistersFor1024Threads) {
  const Problem problem = reduce_columns_problem({.op = ReduceOp::logsumexp, .dtype = DType::f16},
                                                 {.reduced = 31, .inner = 1048577});
  const Policy policy = problem.family->space()
                            .parse("block_threads=256 threads_per_column=4 unroll=8 scope=block staging=direct "
                                   "min_blocks=unset")
                            .value();
  EXPECT_LE(resources_of(unit_of(problem, policy)).registers, 64);
}

INSTANTIATE_TEST_SUITE_P(Ops, ReduceCompiles, testing::ValuesIn([] {
                           std::vector<ReduceOp> ops;
                           for (const ReduceOpInfo& op : kReduceOps) ops.push_back(op.op);
                           return ops;
                         }()),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST(ReduceUnit, ADisagreementAboutThePolicyDoesNotCompile) {
  const NvrtcCompiler compiler(NvrtcSearch::from_environment());
  if (compiler.identity().empty()) GTEST_SKIP() << "NVRTC is not installed";
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, 100);
  Unit unit = unit_of(problem, Policy::of(ReducePolicy{.block_threads = 256, .unroll = 2}));
  const std::size_t tile = unit.source.find("== 8192");
  ASSERT_NE(tile, std::string::npos);
  unit.source.replace(tile, 7, "== 4096");
  EXPECT_THROW(compiler.compile(unit, kArchitecture), Error);
}

}  // namespace
}  // namespace hone
