// The promises of docs/numerics.md about bits, on a real device.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include <hone/canonical_reduce.h>
#include <hone/kernel_family.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>
#include <hone/softmax.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/reduce/reduce_layout.h"
#include "runtime/families/segmented_reduce/segmented_policy.h"
#include "runtime/measure/loaded_candidate.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/expected_bits.h"
#include "tests/runtime/support/expected_softmax_bits.h"
#include "tests/runtime/support/sanitized.h"

namespace hone {
namespace {

class NumericsResults : public DeviceTest {
 protected:
  /// The bits of a result of `spec` over bytes in host memory, placed `offset` elements behind an aligned address.
  std::vector<std::byte> reduce(Session& session, const ReduceSpec& spec, const std::vector<std::byte>& elements,
                                std::int64_t n, std::size_t offset) const {
    const Problem problem = reduce_problem(spec, n);
    const Array<std::byte> in = upload(elements, offset * info(spec.dtype).size_bytes);
    const DeviceBuffer out(device_, problem.family->buffers(problem).back().size_bytes());
    tuned_reduce(session, spec, in.data, n, out.data(), nullptr);
    return fetch_all(out);
  }

  std::vector<std::byte> fetch_all(const DeviceBuffer& from) const {
    std::vector<std::byte> bytes(from.size_bytes());
    device_->copy_to_host(bytes.data(), from.data(), bytes.size(), nullptr);
    device_->synchronize(nullptr);
    return bytes;
  }

  /// A problem, and what runs it with a candidate that is given and compares the bits. Cases that differ in their sizes
  /// or scales alone have the turns 0, 1, 2, … by size.
  struct Case {
    Problem problem;
    std::size_t turn;
    std::function<void(const LoadedCandidate&)> check;
  };

  /// The first policy that the device allows behind one of four places of the space, other ones for each operation and
  /// dtype: NVRTC has few kernels to compile, and each problem meets several policies in some of its sizes.
  Policy policy_of(const Case& one) const {
    const Problem& problem = one.problem;
    std::vector<Policy> all = problem.family->space().all();
    const std::size_t kind = problem.operation + static_cast<std::size_t>(problem.dtype);
    const std::size_t first = all.size() * (one.turn % 4) / 4 + 13 * kind;
    std::ranges::rotate(all, all.begin() + static_cast<std::ptrdiff_t>(first % all.size()));
    return *std::ranges::find_if(
        all, [&](const Policy& policy) { return reason_to_skip(problem, policy, device_->facts()).empty(); });
  }

  /// Compiles the policies of all cases at once, and runs the cases. Grids take turns, too.
  void run(const std::vector<Case>& cases) const {
    std::vector<Policy> policies;
    std::vector<Unit> units;
    for (const Case& one : cases) {
      policies.push_back(policy_of(one));
      units.push_back(unit_of(one.problem, policies.back()));
    }
    const std::vector<CompileOutcome> outcomes = BinaryMemo().compile(*device_, units);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Problem& problem = cases[i].problem;
      SCOPED_TRACE(to_string(problem) + " " + problem.family->space().to_string(policies[i]));
      ASSERT_TRUE(outcomes[i].binary) << outcomes[i].error;
      const CompiledCode code = load_policy(*device_, problem, policies[i], units[i], outcomes[i].binary);
      const bool one_block = problem.family->shape(problem, policies[i]).one_block;
      cases[i].check({{policies[i], {one_block || i % 2 == 0 ? 1 : 7}}, code.module});
    }
  }

  /// The results of a call with these inputs.
  std::vector<std::byte> call(const Problem& problem, const LoadedCandidate& loaded, std::vector<void*> buffers) const {
    const DeviceBuffer out(device_, problem.family->buffers(problem).back().size_bytes());
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    buffers.push_back(out.data());
    loaded.enqueue(*device_, problem, buffers, workspace.data(), nullptr);
    return fetch_all(out);
  }

  template <class T>
  static std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }
};

TEST_F(NumericsResults, KernelsMeetTheExpectedBits) {
  std::vector<Case> cases;
  std::size_t compared = 0;
  for (const ExpectedBits& expected : read_expected_bits()) {
    const ReduceSpec& spec = expected.spec;
    const std::int64_t n = expected.n;
    const std::size_t bytes = info(spec.dtype).size_bytes;
    if (!refusal_of(reduce_problem(spec, n)).empty()) continue;
    // CanonicalReduce has more kernels, against the definition, which meets each line of the file in families_test.
    if (!is_due(++compared, 13)) continue;
    for (const std::size_t offset : {std::size_t{0}, static_cast<std::size_t>(n % 4)}) {
      const Problem problem = reduce_problem(spec, n, offset == 0 ? kMaxAlignment : static_cast<std::uint32_t>(bytes));
      const auto check = [=, this](const LoadedCandidate& loaded) {
        const Array<std::byte> a = upload(expected_bits_elements(expected.spec, 0, n), offset * bytes);
        const Array<std::byte> b = upload(expected_bits_elements(expected.spec, n, n), offset * bytes);
        std::vector<void*> inputs{a.data};
        if (info(expected.spec.op).inputs == 2) inputs.push_back(b.data);
        EXPECT_EQ(call(problem, loaded, inputs), expected.results) << "at offset " << offset;
      };
      cases.push_back({problem, compared, check});
    }
  }
  if (compared == 0) GTEST_SKIP() << "no reduction of an array has reproducible kernels";
  run(cases);
}

/// Arrays of few chunks that begin and end anywhere: at the ends of packs and chunks, and where the last chunk has no
/// element behind the first aligned address. A block, and the blocks of a grid.
TEST_F(NumericsResults, ShortArraysMayEndAnywhere) {
  const auto check = [&]<class T>(ReduceOp op, DType dtype, T element_of(float)) {
    const ReduceSpec spec{.op = op, .dtype = dtype, .numerics = Numerics::reproducible};
    const bool is_pair = info(op).inputs == 2;
    constexpr std::int64_t kChunk = 2048 / sizeof(T), kPack = 16 / sizeof(T), kMost = 9 * kChunk + 3;
    std::vector<T> values[2];
    for (unsigned seed : {0u, 1u})
      for (const float x : random_values<float>(kMost, seed + 1)) values[seed].push_back(element_of(x));
    std::vector<std::int64_t> lengths;
    for (const std::int64_t n : {std::int64_t{0}, kPack, 32 * kPack, kChunk, 3 * kChunk, 4 * kChunk, 8 * kChunk})
      for (const std::int64_t by : {-kPack - 1, -kPack, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, kPack - 1})
        if (n + by > 0) lengths.push_back(n + by);

    using P = ReducePolicy;
    std::vector<Policy> policies;
    for (const int chunks : {1, 2})
      for (const auto finish : {P::Finish::one_block, P::Finish::last_block})
        policies.push_back(Policy::of(P{.block_threads = 128, .unroll = chunks, .finish = finish}));
    const Problem compiled = reduce_problem(spec, kMost, sizeof(T));
    std::vector<Unit> units;
    for (const Policy& policy : policies) units.push_back(unit_of(compiled, policy));
    const std::vector<CompileOutcome> outcomes = BinaryMemo().compile(*device_, units);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      ASSERT_TRUE(outcomes[i].binary) << outcomes[i].error;
      const CompiledCode code = load_policy(*device_, compiled, policies[i], units[i], outcomes[i].binary);
      const bool one_block = compiled.family->shape(compiled, policies[i]).one_block;
      const LoadedCandidate loaded{{policies[i], {one_block ? 1 : 3}}, code.module};
      for (const std::size_t offset : {0, 1, 7}) {
        const Array<T> a = upload(values[0], offset), b = upload(values[1], offset);
        for (const std::int64_t n : lengths) {
          std::vector<std::byte> expected(info(op).outputs * info(spec.result_dtype()).size_bytes);
          canonical_reduce(spec, {values[0].data()}, {is_pair ? values[1].data() : nullptr}, n, expected.data());
          std::vector<void*> inputs{a.data};
          if (is_pair) inputs.push_back(b.data);
          EXPECT_EQ(call(reduce_problem(spec, n, sizeof(T)), loaded, inputs), expected)
              << name(op) << " of " << n << " " << info(dtype).name << " at offset " << offset << ", "
              << compiled.family->space().to_string(policies[i]);
        }
      }
    }
  };
  const auto to_half = [](float x) { return half(x); };
  check(ReduceOp::sum, DType::f16, +to_half);
  check(ReduceOp::dot, DType::f32, +[](float x) { return x; });
  check(ReduceOp::product, DType::f64, +[](float x) { return 1 + 0.01 * static_cast<double>(x); });
  check(ReduceOp::l1_norm, DType::f16, +to_half);
  check(ReduceOp::mean_variance, DType::f32, +[](float x) { return x; });
}

/// Columns of a matrix with any leading dimension, between others.
TEST_F(NumericsResults, ColumnsMeetTheExpectedBits) {
  std::vector<Case> cases;
  std::size_t turn = 0;
  for (const ExpectedBits& expected : read_expected_bits()) {
    if (info(expected.spec.op).inputs != 1 || expected.n == 0) continue;
    if (!is_due(++turn, test::kSanitized ? 97 : 41)) continue;
    const auto odd = static_cast<std::int64_t>(turn);
    const std::int64_t n = expected.n, inner = 2 + odd % 6, pitch = inner + odd % 3, at = odd % inner;
    const Problem problem = reduce_columns_problem(expected.spec, {.reduced = n, .inner = inner, .pitch = pitch});
    const auto check = [=, this](const LoadedCandidate& loaded) {
      const std::vector<std::byte> column = expected_bits_elements(expected.spec, 0, n);
      const std::vector<std::byte> others = expected_bits_elements(expected.spec, 7, n);
      const auto bytes = static_cast<std::int64_t>(info(expected.spec.dtype).size_bytes);
      std::vector<std::byte> matrix(static_cast<std::size_t>(n * pitch * bytes));
      for (std::int64_t i = 0; i < n * pitch; ++i)
        std::memcpy(matrix.data() + i * bytes, (i % pitch == at ? column : others).data() + i / pitch * bytes,
                    static_cast<std::size_t>(bytes));
      const Array<std::byte> in = upload(matrix);
      const std::vector<std::byte> found = call(problem, loaded, {in.data});
      const auto result_bytes = static_cast<std::int64_t>(expected.results.size());
      const auto first = found.begin() + at * result_bytes;
      EXPECT_EQ(std::vector(first, first + result_bytes), expected.results) << "column " << at;
    };
    cases.push_back({problem, turn, check});
  }
  run(cases);
}

/// Batch invariance: alone, among others, at any row of a pitched matrix.
TEST_F(NumericsResults, ARowHasTheSameBitsWhereverItIs) {
  const ReduceSpec spec{.numerics = Numerics::reproducible};
  constexpr std::int64_t kColumns = 1500;
  if (!refusal_of(reduce_rows_problem(spec, {.rows = 1, .columns = kColumns})).empty())
    GTEST_SKIP() << "rows have no reproducible kernels";
  Session session(device_, quick());
  const std::vector<float> row = random_values<float>(kColumns);
  const auto alone = upload(row);
  const DeviceBuffer out(device_, 4096 * sizeof(float));
  tuned_reduce_rows(session, spec, alone.data, {.rows = 1, .columns = kColumns}, out.data(), nullptr);
  const auto expected = std::bit_cast<std::uint32_t>(fetch(out.as<float>()));
  for (const std::int64_t rows : {7, 128, 4096})
    for (const std::int64_t pitch : {kColumns, kColumns + 3}) {
      const std::int64_t at = rows * 5 / 7;
      std::vector<float> matrix(static_cast<std::size_t>(rows * pitch), 3.5f);
      std::copy(row.begin(), row.end(), matrix.begin() + at * pitch);
      const auto in = upload(matrix);
      const RowsShape shape{.rows = rows, .columns = kColumns, .pitch = pitch};
      tuned_reduce_rows(session, spec, in.data, shape, out.data(), nullptr);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(fetch(out.as<float>() + at)), expected) << rows << " × " << pitch;
    }
}

TEST_F(NumericsResults, ARowOfASoftmaxHasTheSameBitsWhereverItIs) {
  constexpr std::int64_t kColumns = 700;
  const SoftmaxSpec spec{.numerics = Numerics::reproducible};
  Session session(device_, quick());
  std::vector<float> row = random_values<float>(kColumns);
  row[3] = -std::numeric_limits<float>::infinity();
  const auto softmax_of = [&](const std::vector<float>& matrix, std::int64_t rows, std::int64_t pitch,
                              std::int64_t at) {
    const auto in = upload(matrix, static_cast<std::size_t>(rows % 3));
    const DeviceBuffer out(device_, matrix.size() * sizeof(float));
    tuned_softmax(session, spec, in.data, SoftmaxShape::rows(rows, kColumns, {pitch, pitch}), out.data(), nullptr);
    std::vector<std::uint32_t> bits(kColumns);
    device_->copy_to_host(bits.data(), out.as<float>() + at * pitch, kColumns * sizeof(float), nullptr);
    device_->synchronize(nullptr);
    return bits;
  };
  const std::vector<std::uint32_t> alone = softmax_of(row, 1, kColumns, 0);
  // Rows of large elements have sums that are relative to another power of two.
  for (const std::int64_t rows : {7, 128, 4096})
    for (const std::int64_t pitch : {kColumns, kColumns + 3})
      for (const float other : {3.5f, 80.0f, 3e38f}) {
        const std::int64_t at = rows * 5 / 7;
        std::vector<float> matrix(static_cast<std::size_t>(rows * pitch), other);
        std::copy(row.begin(), row.end(), matrix.begin() + at * pitch);
        EXPECT_EQ(softmax_of(matrix, rows, pitch, at), alone) << rows << " × " << pitch << " of " << other;
      }
}

/// The definition meets each line of the file in families_test.
TEST_F(NumericsResults, SoftmaxMeetsTheExpectedBits) {
  std::vector<Case> cases;
  const std::vector<ExpectedSoftmaxBits> all = read_expected_softmax_bits();
  for (std::size_t turn = 0; turn < all.size(); ++turn) {
    if (!is_due(turn, test::kSanitized ? 69 : 23)) continue;
    const ExpectedSoftmaxBits& expected = all[turn];
    const SoftmaxSpec& spec = expected.spec;
    const std::int64_t n = expected.n;
    // The elements are one of three rows, which begin anywhere, or one of several columns.
    const auto add = [&](const SoftmaxShape& shape, std::int64_t first, std::int64_t stride) {
      const Problem problem = expected.is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape);
      const auto check = [=, this](const LoadedCandidate& loaded) {
        const std::vector<std::byte> sequence = expected.elements();
        const std::size_t bytes = info(expected.spec.dtype).size_bytes;
        std::vector<std::byte> matrix(problem.family->buffers(problem)[0].size_bytes());
        for (std::int64_t i = 0; i < n; ++i)
          std::memcpy(matrix.data() + static_cast<std::size_t>(first + i * stride) * bytes,
                      sequence.data() + static_cast<std::size_t>(i) * bytes, bytes);
        const Array<std::byte> in = upload(matrix);
        const std::vector<std::byte> results = call(problem, loaded, {in.data});
        const std::size_t each = info(expected.spec.result_dtype()).size_bytes;
        std::size_t next = 0;
        for (const std::int64_t i : expected.places()) {
          const std::byte* const found = results.data() + static_cast<std::size_t>(first + i * stride) * each;
          EXPECT_EQ(std::memcmp(found, expected.results.data() + next, each), 0)
              << to_string(problem) << ", line " << turn << ": element " << i;
          next += each;
        }
      };
      cases.push_back({problem, turn / 4, check});
    };
    const std::int64_t row_pitch = n + n % 3, inner = 2 + n % 5, column_pitch = inner + n % 2;
    add(SoftmaxShape::rows(3, n, {row_pitch, row_pitch}), row_pitch, 1);
    if (turn % 69 == 0 || is_cuda())
      add(SoftmaxShape::columns(n, inner, {column_pitch, column_pitch}), n % inner, column_pitch);
  }
  run(cases);
}

/// A column has the bits of a row of its elements, among any number of others.
TEST_F(NumericsResults, AColumnOfASoftmaxHasTheBitsOfARow) {
  constexpr std::int64_t kElements = 1100;
  const SoftmaxSpec spec{.numerics = Numerics::reproducible};
  Session session(device_, quick());
  const std::vector<float> sequence = random_values<float>(kElements);
  const auto softmax_of = [&](const std::vector<float>& matrix, const SoftmaxShape& shape, std::int64_t stride,
                              std::int64_t at) {
    const auto in = upload(matrix);
    const DeviceBuffer out(device_, matrix.size() * sizeof(float));
    tuned_log_softmax(session, spec, in.data, shape, out.data(), nullptr);
    std::vector<float> all(matrix.size());
    device_->copy_to_host(all.data(), out.data(), all.size() * sizeof(float), nullptr);
    device_->synchronize(nullptr);
    std::vector<std::uint32_t> bits;
    for (std::int64_t i = 0; i < kElements; ++i)
      bits.push_back(std::bit_cast<std::uint32_t>(all[static_cast<std::size_t>(i * stride + at)]));
    return bits;
  };
  const std::vector<std::uint32_t> row = softmax_of(sequence, SoftmaxShape::rows(1, kElements), 1, 0);
  for (const std::int64_t inner : {1, 7, 1000}) {
    const std::int64_t at = inner * 5 / 7;
    std::vector<float> matrix(static_cast<std::size_t>(kElements * inner), 3.5f);
    for (std::int64_t i = 0; i < kElements; ++i)
      matrix[static_cast<std::size_t>(i * inner + at)] = sequence[static_cast<std::size_t>(i)];
    EXPECT_EQ(softmax_of(matrix, SoftmaxShape::columns(kElements, inner), inner, at), row) << inner;
  }
}

/// Segments of all kinds of lengths, which begin anywhere, by a warp and by a block each.
TEST_F(NumericsResults, ASegmentHasTheBitsOfItsElements) {
  const ReduceSpec spec{.numerics = Numerics::reproducible};
  std::vector<std::int32_t> offsets{0};
  for (const int length : {0, 1, 5, 31, 511, 512, 513, 0, 3000, 70001, 2, 1024})
    offsets.push_back(offsets.back() + length);
  const std::vector<float> values = random_values<float>(static_cast<std::size_t>(offsets.back()));
  const auto in = upload(values, 1);
  const auto at = upload(offsets);
  const auto segments = static_cast<std::int64_t>(offsets.size()) - 1;
  const DeviceBuffer out(device_, offsets.size() * sizeof(float));
  const Problem problem = segmented_reduce_problem(spec, DType::i32, segments, offsets.back());
  for (const Scope scope : {Scope::warp, Scope::block}) {
    const Policy policy = Policy::of(SegmentedPolicy{.scope = scope,
                                                     .threads_per_segment = scope == Scope::warp ? 32 : 0,
                                                     .block_threads = 128,
                                                     .thread_bytes = 64});
    Session session(device_, {.on_miss = MissPolicy::error, .cache_path = {}});
    ASSERT_TRUE(session.tune(problem, {.budget = std::chrono::seconds(20), .only = {Candidate{policy, {3}}}}).winner);
    tuned_reduce_segments(session, spec, in.data, offsets.back(), at.data, DType::i32, segments, out.data(), nullptr);
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      float expected = 0;
      canonical_reduce(spec, {values.data() + offsets[s]}, {}, offsets[s + 1] - offsets[s], &expected);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(fetch(out.as<float>() + s)), std::bit_cast<std::uint32_t>(expected))
          << "segment " << s;
    }
  }
}

/// Both modes are the same for extremes, so which of two zeros or NaNs comes first must not show.
TEST_F(NumericsResults, ExtremesHaveOneZeroAndOneNaN) {
  Session session(device_, quick());
  const auto check = [&]<class T>(T zero, T negative, T odd, DType dtype) {
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::minmax, ReduceOp::range, ReduceOp::max_norm}) {
      const ReduceSpec spec{.op = op, .dtype = dtype, .numerics = Numerics::reproducible};
      std::vector<T> values(3001, zero);
      for (std::size_t i = 0; i < values.size(); i += 3) values[i] = negative;
      std::vector<T> swapped = values;
      for (T& each : swapped) each = std::memcmp(&each, &zero, sizeof(T)) == 0 ? negative : zero;
      const auto bits = [&](const std::vector<T>& of, std::size_t offset) {
        return reduce(session, spec, bytes_of(of), static_cast<std::int64_t>(of.size()), offset);
      };
      const std::vector<std::byte> zeros = bits(values, 0);
      EXPECT_TRUE(std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{}; }))
          << name(op) << " " << info(dtype).name;
      EXPECT_EQ(bits(swapped, 1), zeros) << name(op) << " " << info(dtype).name;
      values[1700] = odd;
      swapped[5] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_EQ(bits(values, 0), bits(swapped, 1)) << name(op) << " " << info(dtype).name << " of a NaN";
    }
  };
  check(0.0f, -0.0f, std::bit_cast<float>(0xffc12345u), DType::f32);
  check(0.0, -0.0, std::bit_cast<double>(0xfff8000000000123u), DType::f64);
  half odd = half(1);
  odd.bits = 0xfe55;
  check(half(0), half(-0.0f), odd, DType::f16);
}

}  // namespace
}  // namespace hone
