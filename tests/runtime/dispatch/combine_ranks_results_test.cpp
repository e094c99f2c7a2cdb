// Partials of ranks, combined on a real device next to a fold in long double; and what a rank adds to its own.
#include <gmock/gmock.h>

#include <cstring>

#include "runtime/families/combine_ranks/normalize_rows.h"
#include "runtime/families/combine_ranks/partial_layout.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class CombineRanks : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) session_.emplace(device_, quick());
  }

  /// Launches on the inputs of the family's verifier; the outputs' bytes, which it approves.
  std::vector<std::vector<std::byte>> run(const Problem& problem, std::string_view kind) {
    const Verifier& verifier = problem.family->verifier();
    std::vector<DeviceBuffer> memory;
    std::vector<void*> buffers;
    std::vector<std::vector<std::byte>> patterns, outputs;
    const std::vector<BufferSpec> specs = problem.family->buffers(problem);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      memory.emplace_back(device_, std::max<std::size_t>(specs[i].size_bytes(), 1));
      buffers.push_back(memory.back().data());
      if (!specs[i].is_input) continue;
      std::vector<std::byte>& pattern =
          patterns.emplace_back(verifier.input_pattern(problem, static_cast<int>(i), kind));
      EXPECT_LE(specs[i].size_bytes(), pattern.size());
      device_->copy_to_device(buffers[i], pattern.data(), specs[i].size_bytes(), nullptr);
      device_->synchronize(nullptr);
    }
    const Choice choice = session_->launch(problem, buffers, nullptr);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].is_input) continue;
      outputs.emplace_back(specs[i].size_bytes());
      device_->copy_to_host(outputs.back().data(), buffers[i], specs[i].size_bytes(), nullptr);
    }
    device_->synchronize(nullptr);
    EXPECT_EQ(verifier.verify(problem, choice.winner->candidate, patterns, outputs), "") << to_string(problem);
    return outputs;
  }

  std::optional<Session> session_;
};

// Each lane combines several ranks where there are more ranks than lanes.
TEST_F(CombineRanks, IsAFoldForEveryOperation) {
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DType dtype : {DType::f32, DType::i32, DType::boolean, DType::f16}) {
      if (!reduce_supports(op.op, dtype)) continue;
      const std::int64_t ranks = dtype == DType::f32 ? 67 : 8;
      run(combine_ranks_problem({.op = op.op, .dtype = dtype}, ranks, 5), "uniform");
      run(combine_ranks_problem({.op = op.op, .dtype = dtype}, ranks, 5), "special");
    }
}

TEST_F(CombineRanks, IsAFoldForEveryNumberOfRanks) {
  for (const std::int64_t ranks : {1, 2, 3, 5, 8, 31, 32, 33, 64, 100, 1000})
    for (const std::int64_t rows : {1, 3, 300})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::argmax})
        run(combine_ranks_problem({.op = op}, ranks, rows), "special");
}

TEST_F(CombineRanks, KeepsANegativeZero) {
  const Problem problem = combine_ranks_problem({.op = ReduceOp::sum}, 1, 1);
  const PartialLayout layout = PartialLayout::of({.op = ReduceOp::sum}, 1);
  const DeviceBuffer partial(device_, static_cast<std::size_t>(layout.block_bytes)), out(device_, 4);
  const float zero = -0.0f;
  device_->copy_to_device(partial.data(), &zero, sizeof(zero), nullptr);
  void* const buffers[] = {partial.data(), out.data()};
  session_->launch(problem, buffers, nullptr);
  EXPECT_TRUE(std::signbit(fetch(out.as<float>())));
}

TEST_F(CombineRanks, RefusesWhatNoRanksHave) {
  const KernelFamily& family = combine_ranks_family();
  EXPECT_THAT(family.refuse(combine_ranks_problem({}, 0, 1)), Names("at least one rank", "0 ranks"));
  EXPECT_THAT(family.refuse(combine_ranks_problem({}, 1 << 20, std::int64_t{1} << 40)), Names("no memory"));
  EXPECT_THAT(family.refuse(combine_ranks_problem({.op = ReduceOp::logsumexp, .dtype = DType::i32}, 1, 1)),
              Names("logsumexp"));
}

TEST_F(CombineRanks, PartialsAreLocated) {
  for (const DType dtype : {DType::f32, DType::u8, DType::f64}) {
    const ReduceSpec spec{.op = ReduceOp::argmin, .dtype = dtype};
    run(record_partial_problem(spec, {.rows = 1, .columns = 1000}), "uniform");
    run(record_partial_problem(spec, {.rows = 200, .columns = 37, .pitch = 50}), "uniform");
    run(record_partial_problem(spec, {.rows = 3, .columns = 0}), "uniform");
  }
  run(record_partial_problem({.op = ReduceOp::mean}, {.rows = 7, .columns = 123456789}), "uniform");
}

// Packs and rests of rows, with rows that begin at no pack, and results of another size.
TEST_F(CombineRanks, RowsAreNormalized) {
  for (const bool is_logarithm : {false, true}) {
    run(normalize_rows_problem({.dtype = DType::f32}, is_logarithm, SoftmaxShape::rows(5, 5003)), "uniform");
    run(normalize_rows_problem({.dtype = DType::f16}, is_logarithm, SoftmaxShape::rows(3, 1000, {1016, 1024})),
        "uniform");
    run(normalize_rows_problem({.dtype = DType::bf16, .result = DType::f32}, is_logarithm, SoftmaxShape::rows(4, 96)),
        "uniform");
    run(normalize_rows_problem({.dtype = DType::f64}, is_logarithm, SoftmaxShape::rows(300, 7)), "uniform");
  }
}

}  // namespace
}  // namespace hone
