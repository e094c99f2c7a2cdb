// Partials of ranks, combined on a real device next to a fold in long double; and what a rank adds to its own.
#include <gmock/gmock.h>

#include <cstring>

#include "runtime/families/combine_ranks/normalize_rows.h"
#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/combine_ranks/shard_layout.h"
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
      std::vector<std::byte> contents(specs[i].size_bytes());
      for (std::size_t at = 0; at < contents.size(); ++at) contents[at] = pattern[at % pattern.size()];
      device_->copy_to_device(buffers[i], contents.data(), contents.size(), nullptr);
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
  std::size_t turn = 0;
  for (const ReduceOpInfo& op : kReduceOps)
    for (const DType dtype : {DType::f32, DType::i32, DType::boolean, DType::f16}) {
      if (!reduce_supports(op.op, dtype) || !test::in_share(turn++)) continue;
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

// The verifier compares nodes of the canonical tree in every bit: within a chunk, with whole chunks and whole runs of
// them, for a shard that begins with a chunk and one that does not.
TEST_F(CombineRanks, ShardsAreReducedToNodes) {
  const auto run_shard = [&](const ReduceSpec& spec, const RowsShape& shape, std::uint32_t alignment = kMaxAlignment) {
    const Problem problem = reduce_shard_problem(spec, shape, 0, {}, alignment);
    for (const Problem& each : problem.family->verifier().verified_problems(problem))
      for (const std::string_view kind : {"uniform", "nan", "infinity"}) run(each, kind);
  };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean_variance, ReduceOp::logsumexp, ReduceOp::dot}) {
    const ReduceSpec spec{.op = op, .numerics = Numerics::reproducible};
    for (const std::int64_t columns : {0, 1, 511, 513, 40000}) run_shard(spec, {.rows = 1, .columns = columns});
  }
  run_shard({.op = ReduceOp::mean, .dtype = DType::f16, .nan = NanPolicy::ignore, .numerics = Numerics::reproducible},
            {.rows = 3, .columns = 9001, .pitch = 9003});
  run_shard({.op = ReduceOp::product, .dtype = DType::f64, .numerics = Numerics::reproducible},
            {.rows = 2, .columns = 700});
  // Bytes of two arrays that are aligned alike to less than a word.
  run_shard({.op = ReduceOp::dot, .dtype = DType::f8e4m3, .numerics = Numerics::reproducible},
            {.rows = 1, .columns = 5001}, 2);
  for (const SoftmaxSpec& spec : {SoftmaxSpec{}, SoftmaxSpec{.result = DType::bf16, .scale = -0.5},
                                  SoftmaxSpec{.dtype = DType::f16, .result = DType::f32, .scale = -0.5}}) {
    const Problem problem = softmax_shard_problem(spec, {.rows = 4, .columns = 3000, .pitch = 3001}, 0, {});
    EXPECT_EQ(shard_spec_of(problem).result_dtype(), spec.result_dtype()) << "weights are those of one GPU";
    for (const Problem& each : problem.family->verifier().verified_problems(problem)) run(each, "uniform");
  }
}

TEST_F(CombineRanks, ShardsCombineToTheRootForEveryNumberOfRanks) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean_variance, ReduceOp::logsumexp, ReduceOp::dot, ReduceOp::mean})
    for (const std::int64_t ranks : {1, 2, 5, 40})
      for (const std::string_view kind : {"uniform", "nan"})
        run(combine_shards_problem({.op = op, .numerics = Numerics::reproducible}, ranks, 3, {}), kind);
  run(combine_shards_problem({.op = ReduceOp::l1_norm, .dtype = DType::bf16, .numerics = Numerics::reproducible}, 9, 1,
                             {}), "uniform");
}

TEST(ShardBounds, AreThoseOfTheLargestShardAndOfCutChunks) {
  const auto bounds_of = [](std::vector<std::int64_t> columns) { return ShardBounds::of(DType::f32, columns); };
  EXPECT_EQ(bounds_of({1024, 512, 0}).levels, 2);
  EXPECT_FALSE(bounds_of({1024, 512, 0}).has_edges);
  EXPECT_TRUE(bounds_of({1024, 1, 511}).has_edges);
  EXPECT_EQ(bounds_of({100, 0}).levels, 0);
  const auto bytes = [](const ShardBounds& bounds) {
    return ShardLayout::of(combine_shards_problem({.numerics = Numerics::reproducible}, 4, 1, bounds)).block_bytes;
  };
  EXPECT_EQ(bytes(bounds_of({1024, 1024})), 16);
  EXPECT_EQ(bytes({}), 4096 + 256);
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
    run(canonical_normalize_problem({.dtype = DType::f16, .scale = -2}, is_logarithm,
                                    SoftmaxShape::rows(5, 1003, {1016, 1024})), "uniform");
    run(canonical_normalize_problem({.dtype = DType::f32, .result = DType::f64}, is_logarithm,
                                    SoftmaxShape::rows(4, 100)), "uniform");
  }
}

}  // namespace
}  // namespace hone
