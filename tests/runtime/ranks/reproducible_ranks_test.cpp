// Reproducible results over ranks have the bits of one rank's, whatever the number of ranks and however uneven shards
// are.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <hone/all_softmax.h>
#include <hone/canonical_reduce.h>
#include <hone/softmax.h>

#include "tests/runtime/ranks/ranks.h"

namespace hone {
namespace {

/// Elements of 20 binades and both signs, some NaN where those are ignored; the same on each rank.
std::vector<std::byte> many_binades(const ReduceSpec& spec, std::int64_t n) {
  return with_element_type(spec.dtype, [&]<class T>(T) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(n) * sizeof(T));
    std::mt19937 random(11);
    for (std::int64_t i = 0; i < n; ++i) {
      const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
      const float mantissa = 1.0f + static_cast<float>(random() % 1000) / 1000;
      float value = sign * std::ldexp(mantissa, static_cast<int>(random() % 20) - 14);
      if (spec.nan == NanPolicy::ignore && i % 7 == 3) value = std::numeric_limits<float>::quiet_NaN();
      const auto element = static_cast<T>(value);
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &element, sizeof(T));
    }
    return bytes;
  });
}

class ReproducibleRanks : public RanksTest, public testing::WithParamInterface<ReduceSpec> {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    if (!IsSkipped() && ranks() != 4) GTEST_SKIP() << "for 4 ranks";
  }

  std::size_t element_bytes() const { return info(GetParam().dtype).size_bytes; }

  /// A communicator of the first `count` ranks, empty on the others.
  std::unique_ptr<MpiCommunicator> of_ranks(int count, CommunicatorOptions options) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() < count ? 0 : MPI_UNDEFINED, rank(), &part);
    if (part == MPI_COMM_NULL) return nullptr;
    auto communicator = std::make_unique<MpiCommunicator>(part, options);
    MPI_Comm_free(&part);
    return communicator;
  }

  /// The calls of one division of n elements over the ranks of `some`.
  void expect_bits_of_one_rank(MpiCommunicator& some, const std::vector<std::int64_t>& sizes) {
    const ReduceSpec& spec = GetParam();
    const auto r = static_cast<std::size_t>(some.rank());
    const std::int64_t n = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    const std::int64_t before = std::accumulate(sizes.begin(), sizes.begin() + some.rank(), std::int64_t{0});
    const std::vector<std::byte> a = many_binades(spec, n);
    std::vector<std::byte> b = a;
    std::rotate(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(n > 0 ? element_bytes() : 0), b.end());
    const std::size_t at = static_cast<std::size_t>(before) * element_bytes();
    const DeviceBuffer mine = upload(a.data() + at, static_cast<std::size_t>(sizes[r]) * element_bytes());
    const DeviceBuffer other = upload(b.data() + at, static_cast<std::size_t>(sizes[r]) * element_bytes());
    const DeviceBuffer out(device_, 16);
    const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
    std::array<std::byte, 16> expected{}, found{};
    canonical_reduce(spec, {a.data()}, {b.data()}, n, expected.data());
    if (spec.op == ReduceOp::dot)
      tuned_all_dot(*session_, some, spec, mine.data(), other.data(), sizes[r], out.data(), nullptr);
    else tuned_all_reduce(*session_, some, spec, sizes[r] > 0 ? mine.data() : nullptr, sizes[r], out.data(), nullptr);
    device_->copy_to_host(found.data(), out.data(), bytes, nullptr);
    std::string text;
    for (const std::int64_t size : sizes) text += std::to_string(size) + " ";
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), bytes), 0) << name(spec.op) << " of " << text;
  }
};

std::vector<ReduceSpec> specs() {
  using enum ReduceOp;
  constexpr Numerics kSame = Numerics::reproducible;
  return {{.op = sum, .dtype = DType::f32, .numerics = kSame},
          {.op = mean, .dtype = DType::f16, .numerics = kSame},
          {.op = mean, .dtype = DType::f32, .nan = NanPolicy::ignore, .numerics = kSame},
          {.op = mean_variance, .dtype = DType::f32, .numerics = kSame},
          {.op = mean_variance, .dtype = DType::bf16, .nan = NanPolicy::ignore, .numerics = kSame},
          {.op = logsumexp, .dtype = DType::f64, .numerics = kSame},
          {.op = dot, .dtype = DType::f32, .numerics = kSame}};
}
std::string spec_name(const testing::TestParamInfo<ReduceSpec>& param) {
  return std::string(name(param.param.op)) + "_" + std::string(info(param.param.dtype).name) +
         (param.param.nan == NanPolicy::ignore ? "_nan_ignored" : "");
}
INSTANTIATE_TEST_SUITE_P(, ReproducibleRanks, testing::ValuesIn(specs()), spec_name);

TEST_P(ReproducibleRanks, HaveTheBitsOfOneForEveryNumberOfRanks) {
  const auto c = static_cast<std::int64_t>(2048 / element_bytes());
  const std::vector<std::vector<std::int64_t>> divisions{
      {c, c, c, c}, {c - 1, c + 1, 3 * c, 5}, {0, 7, 0, 2 * c + 3}, {1, 2, 3, 4}, {5 * c + 17, 0, 0, 11 * c}};
  first_on_two_ranks(
      [&] {
        for (const std::int64_t n : {c, 4 * c, 16 * c}) prepare_all_reduce(*session_, *communicator_, GetParam(), n);
      },
      [] {});
  for (int count = 1; count <= 4; ++count) {
    // Unchecked ranks do not know each other's sizes.
    const auto some = of_ranks(count, {.checked = count % 2 == 0});
    if (!some) continue;
    for (std::vector<std::int64_t> sizes : divisions) {
      for (; static_cast<int>(sizes.size()) > count; sizes.pop_back()) sizes[sizes.size() - 2] += sizes.back();
      expect_bits_of_one_rank(*some, sizes);
    }
  }
}

class ReproducibleRowsOfRanks : public ReproducibleRanks {};
INSTANTIATE_TEST_SUITE_P(, ReproducibleRowsOfRanks,
                         testing::Values(ReduceSpec{.op = ReduceOp::mean_variance, .numerics = Numerics::reproducible},
                                         ReduceSpec{.op = ReduceOp::logsumexp, .numerics = Numerics::reproducible}),
                         spec_name);

// Columns 0 … 1, none, 2 … 1299 and 1300 … 1600 of a matrix with a pitch of 1603.
constexpr std::int64_t kRows = 3, kColumns = 1601, kPitch = 1603;
constexpr std::array<std::int64_t, 5> kFirst{0, 2, 2, 1300, kColumns};

TEST_P(ReproducibleRowsOfRanks, HaveTheBitsOfOneRank) {
  const ReduceSpec& spec = GetParam();
  const std::vector<std::byte> values = many_binades(spec, kRows * kPitch);
  const DeviceBuffer matrix = upload(values.data(), values.size()), out(device_, 64);
  const auto r = static_cast<std::size_t>(rank());
  const auto outputs = static_cast<std::size_t>(info(spec.op).outputs);
  tuned_all_reduce_rows(*session_, *communicator_, spec, matrix.as<float>() + kFirst[r],
                        {.rows = kRows, .columns = kFirst[r + 1] - kFirst[r], .pitch = kPitch}, out.data(), nullptr);
  for (std::size_t row = 0; row < kRows; ++row) {
    std::array<float, 2> expected{};
    canonical_reduce(spec, {matrix.as<float>() + row * kPitch}, {}, kColumns, expected.data());
    EXPECT_EQ(std::memcmp(out.as<float>() + row * outputs, expected.data(), outputs * sizeof(float)), 0) << row;
  }
}

struct SoftmaxCase {
  SoftmaxSpec spec;
  bool is_logarithm = false;
};
std::string softmax_name(const testing::TestParamInfo<SoftmaxCase>& param) {
  return std::string(info(param.param.spec.dtype).name);
}

class ReproducibleSoftmaxOfRanks : public RanksTest, public testing::WithParamInterface<SoftmaxCase> {};
INSTANTIATE_TEST_SUITE_P(
    , ReproducibleSoftmaxOfRanks,
    testing::Values(SoftmaxCase{{.dtype = DType::f32, .numerics = Numerics::reproducible}, true},
                    SoftmaxCase{{.dtype = DType::f16, .result = DType::f32, .scale = -0.7}, false},
                    SoftmaxCase{{.dtype = DType::bf16, .result = DType::f16, .numerics = Numerics::reproducible}, false},
                    SoftmaxCase{{.dtype = DType::f64, .scale = 3, .numerics = Numerics::reproducible}, false}),
    softmax_name);

// A scale other than 1 has the bits of reproducible numerics in the fast mode, too.
TEST_P(ReproducibleSoftmaxOfRanks, HasTheBitsOfOneRank) {
  if (ranks() != 4) GTEST_SKIP() << "for 4 ranks";
  const auto& [spec, is_logarithm] = GetParam();
  const std::size_t in_bytes = info(spec.dtype).size_bytes, out_bytes = info(spec.result_dtype()).size_bytes;
  std::vector<std::byte> values = many_binades({.dtype = spec.dtype}, kRows * kPitch);
  const DeviceBuffer in = upload(values.data(), values.size());
  const DeviceBuffer out(device_, kRows * kPitch * out_bytes), whole(device_, kRows * kPitch * out_bytes);
  SoftmaxSpec local = spec;
  local.numerics = Numerics::reproducible;
  const SoftmaxShape all = SoftmaxShape::rows(kRows, kColumns, {kPitch, kPitch});
  using Call = Choice (*)(Session&, const SoftmaxSpec&, const void*, const SoftmaxShape&, void*, Stream);
  const Call call = is_logarithm ? Call{&tuned_log_softmax} : Call{&tuned_softmax};
  call(*session_, local, in.data(), all, whole.data(), nullptr);
  const auto r = static_cast<std::size_t>(rank());
  const std::int64_t first = kFirst[r], columns = kFirst[r + 1] - first;
  (is_logarithm ? tuned_all_log_softmax : tuned_all_softmax)(
      *session_, *communicator_, spec, in.as<std::byte>() + static_cast<std::size_t>(first) * in_bytes,
      SoftmaxShape::rows(kRows, columns, {kPitch, kPitch}),
      out.as<std::byte>() + static_cast<std::size_t>(first) * out_bytes, nullptr);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::size_t at = static_cast<std::size_t>(row * kPitch + first) * out_bytes;
    EXPECT_EQ(std::memcmp(out.as<std::byte>() + at, whole.as<std::byte>() + at,
                          static_cast<std::size_t>(columns) * out_bytes), 0) << "row " << row;
  }
}

// Origins are zeros, whose signs a maximum does not keep.
TEST_F(RanksTest, LogSoftmaxOfANegativeZeroIsAZeroAsOnOneRank) {
  const std::array<float, 2> values{-0.0f, -1000.0f};
  const DeviceBuffer in = upload(values.data(), sizeof(values)), out(device_, 8), whole(device_, 8);
  const SoftmaxSpec spec{.numerics = Numerics::reproducible};
  const bool has_elements = rank() == 0;
  tuned_log_softmax(*session_, spec, in.data(), SoftmaxShape::rows(1, 2), whole.data(), nullptr);
  tuned_all_log_softmax(*session_, *communicator_, spec, in.data(), SoftmaxShape::rows(1, has_elements ? 2 : 0),
                        out.data(), nullptr);
  if (!has_elements) return;
  EXPECT_EQ(std::memcmp(out.data(), whole.data(), 8), 0) << out.as<float>()[0];
}

}  // namespace
}  // namespace hone
