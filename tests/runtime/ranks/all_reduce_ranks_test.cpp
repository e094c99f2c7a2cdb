#include <cmath>
#include <limits>
#include <numeric>

#include <hone/all_softmax.h>
#include <hone/error.h>
#include <hone/reduce_axis.h>
#include <hone/softmax.h>

#include "tests/runtime/ranks/ranks.h"

namespace hone {
namespace {

/// An operation on elements of a dtype, and how unevenly they are spread.
struct Spread {
  ReduceSpec spec;
  std::vector<std::int64_t> sizes;  ///< of the shards; as many as there are ranks
};

std::string spread_name(const testing::TestParamInfo<Spread>& param) {
  const ReduceSpec& spec = param.param.spec;
  std::string text = std::string(name(spec.op)) + "_" + std::string(info(spec.dtype).name);
  if (spec.result) text += "_to_" + std::string(info(*spec.result).name);
  if (spec.nan == NanPolicy::ignore) text += "_nan_ignored";
  for (const std::int64_t size : param.param.sizes) text += "_" + std::to_string(size);
  return text;
}

const std::vector<std::int64_t> kEven{1000, 1000, 1000, 1000}, kUneven{1000, 1, 0, 1077}, kLastAlone{0, 0, 0, 5};

std::vector<Spread> spreads() {
  std::vector<Spread> list;
  for (const ReduceOpInfo& op : kReduceOps)
    if (op.inputs == 1 && reduce_supports(op.op, DType::f32))
      list.push_back({{.op = op.op, .dtype = DType::f32}, kUneven});
  // The combining kernels of all dtypes have tests of their own.
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::minmax, ReduceOp::argmax, ReduceOp::mean, ReduceOp::l2_norm})
    list.push_back({{.op = op, .dtype = DType::i32}, kUneven});
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::range, ReduceOp::argmin, ReduceOp::mean, ReduceOp::mean_variance})
    list.push_back({{.op = op, .dtype = DType::f32}, kLastAlone});
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean_variance, ReduceOp::argmax})
    list.push_back({{.op = op, .dtype = DType::f32}, kEven});
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::mean, ReduceOp::mean_variance, ReduceOp::argmin})
    list.push_back({{.op = op, .dtype = DType::f32, .nan = NanPolicy::ignore}, kUneven});
  list.push_back({{.op = ReduceOp::sum, .dtype = DType::f16, .result = DType::f16}, kUneven});
  list.push_back({{.dtype = DType::f32, .accumulator = DType::f64, .result = DType::f64}, kUneven});
  list.push_back({{.op = ReduceOp::logsumexp, .dtype = DType::f64}, kUneven});
  list.push_back({{.op = ReduceOp::mean_variance, .dtype = DType::u8}, kUneven});
  list.push_back({{.op = ReduceOp::range, .dtype = DType::i64}, kUneven});
  list.push_back({{.op = ReduceOp::max, .dtype = DType::u64}, kUneven});
  list.push_back({{.op = ReduceOp::argmax, .dtype = DType::bf16}, kUneven});
  for (const ReduceOp op : {ReduceOp::any, ReduceOp::all, ReduceOp::sum})
    list.push_back({{.op = op, .dtype = DType::boolean}, kUneven});
  return list;
}

/// Elements of all ranks, with a NaN where those are ignored; the same on each rank.
std::vector<std::byte> elements(const ReduceSpec& spec, std::int64_t n) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(n) * info(spec.dtype).size_bytes);
  std::mt19937 random(7);
  with_element_type(spec.dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < n; ++i) {
      T value;
      if constexpr (std::is_same_v<T, bool>) value = i != 500;
      else if constexpr (std::is_integral_v<T>) value = static_cast<T>(random() % 200);
      else value = static_cast<T>(static_cast<float>(random() % 4001) / 1000.0f - 2);
      if constexpr (std::is_same_v<T, float>)
        if (spec.nan == NanPolicy::ignore && i % 10 == 3) value = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

/// Equal, or as near as the roundings of a few thousand elements allow.
void expect_near(DType dtype, const std::vector<std::byte>& found, const std::vector<std::byte>& expected) {
  with_element_type(dtype, [&]<class T>(T) {
    for (std::size_t at = 0; at < found.size(); at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, found.data() + at, sizeof(T));
      std::memcpy(&b, expected.data() + at, sizeof(T));
      if constexpr (std::is_integral_v<T>) {
        EXPECT_EQ(a, b);
      } else {
        const double x = static_cast<double>(static_cast<float>(a)), y = static_cast<double>(static_cast<float>(b));
        if (std::isnan(y) || std::isinf(y)) EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << x << " " << y;
        else EXPECT_NEAR(x, y, (sizeof(T) == 2 ? 2e-3 : 2e-5) * std::max(1.0, std::fabs(y)));
      }
    }
  });
}

class AllReduce : public RanksTest, public testing::WithParamInterface<Spread> {};
INSTANTIATE_TEST_SUITE_P(, AllReduce, testing::ValuesIn(spreads()), spread_name);

TEST_P(AllReduce, IsThatOfTheWholeArrayWithTheSameBitsOnAllRanks) {
  const auto& [spec, sizes] = GetParam();
  if (sizes.size() != static_cast<std::size_t>(ranks())) GTEST_SKIP() << "for " << sizes.size() << " ranks";
  const std::int64_t n = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const std::int64_t before = std::accumulate(sizes.begin(), sizes.begin() + rank(), std::int64_t{0});
  const std::int64_t mine = sizes[static_cast<std::size_t>(rank())];
  const std::vector<std::byte> values = elements(spec, n);
  const std::size_t element = info(spec.dtype).size_bytes;
  const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
  const DeviceBuffer shard = upload(values.data() + static_cast<std::size_t>(before) * element,
                                    static_cast<std::size_t>(mine) * element);
  const DeviceBuffer whole = upload(values.data(), values.size()), out(device_, 64);
  std::vector<std::byte> found(bytes), expected(bytes);
  first_on_two_ranks(
      [&] {
        for (const std::int64_t size : sizes) prepare_all_reduce(*session_, *communicator_, spec, size);
      },
      [&] { session_->prepare(reduce_problem(spec, n)); });
  tuned_all_reduce(*session_, *communicator_, spec, mine > 0 ? shard.data() : nullptr, mine, out.data(), nullptr);
  device_->copy_to_host(found.data(), out.data(), bytes, nullptr);
  tuned_reduce_and_wait(*session_, spec, whole.data(), n, expected.data(), nullptr);
  expect_near(spec.result_dtype(), found, expected);
  expect_equal_bits(found.data(), bytes);
}

class AllReduceRows : public RanksTest, public testing::WithParamInterface<ReduceOp> {};
INSTANTIATE_TEST_SUITE_P(, AllReduceRows,
                         testing::Values(ReduceOp::sum, ReduceOp::minmax, ReduceOp::argmax, ReduceOp::mean_variance,
                                         ReduceOp::logsumexp),
                         [](const auto& param) { return std::string(name(param.param)); });

class AllSoftmax : public RanksTest, public testing::WithParamInterface<std::tuple<DType, bool>> {};

// Columns 0…63, 64…99, none, and 100…299 of a matrix with a pitch of 310.
TEST_P(AllReduceRows, AreThoseOfTheWholeMatrix) {
  if (ranks() != 4) GTEST_SKIP() << "for 4 ranks";
  constexpr std::int64_t kRows = 5, kColumns = 300, kPitch = 310;
  constexpr std::array<std::int64_t, 5> kFirst{0, 64, 100, 100, 300};
  const ReduceSpec spec{.op = GetParam(), .dtype = DType::f32};
  const std::vector<std::byte> values = elements(spec, kRows * kPitch);
  const DeviceBuffer matrix = upload(values.data(), values.size());
  const auto r = static_cast<std::size_t>(rank());
  const RowsShape shard{.rows = kRows, .columns = kFirst[r + 1] - kFirst[r], .pitch = kPitch};
  const auto outputs = static_cast<std::size_t>(info(spec.op).outputs);
  const std::size_t bytes = kRows * info(spec.result_dtype()).size_bytes * outputs;
  const DeviceBuffer out(device_, bytes), whole(device_, bytes);
  first_on_two_ranks(
      [&] {
        for (std::size_t i = 0; i < 4; ++i)
          prepare_all_reduce_rows(*session_, *communicator_, spec,
                                  {.rows = kRows, .columns = kFirst[i + 1] - kFirst[i], .pitch = kPitch}, 4);
      },
      [&] { session_->prepare(reduce_rows_problem(spec, {.rows = kRows, .columns = kColumns, .pitch = kPitch})); });
  tuned_all_reduce_rows(*session_, *communicator_, spec, matrix.as<float>() + kFirst[r], shard, out.data(), nullptr);
  tuned_reduce_rows(*session_, spec, matrix.data(), {.rows = kRows, .columns = kColumns, .pitch = kPitch},
                    whole.data(), nullptr);
  std::vector<std::byte> found(bytes), expected(bytes);
  device_->copy_to_host(found.data(), out.data(), bytes, nullptr);
  device_->copy_to_host(expected.data(), whole.data(), bytes, nullptr);
  expect_near(spec.result_dtype(), found, expected);
  expect_equal_bits(found.data(), bytes);
}

// The parts of the rows are in place on one rank in two.
TEST_P(AllSoftmax, IsThatOfTheWholeMatrix) {
  if (ranks() != 4) GTEST_SKIP() << "for 4 ranks";
  constexpr std::int64_t kRows = 3, kColumns = 300, kPitch = 312;
  constexpr std::array<std::int64_t, 5> kFirst{0, 64, 100, 100, 300};
  const auto [dtype, is_logarithm] = GetParam();
  const ReduceSpec spec{.dtype = dtype};
  const std::size_t element = info(dtype).size_bytes, bytes = kRows * kPitch * element;
  const std::vector<std::byte> values = elements(spec, kRows * kPitch);
  const DeviceBuffer in = upload(values.data(), bytes), own = upload(values.data(), bytes), whole(device_, bytes);
  using Call = Choice (*)(Session&, const SoftmaxSpec&, const void*, const SoftmaxShape&, void*, Stream);
  const Call call = is_logarithm ? Call{&tuned_log_softmax} : Call{&tuned_softmax};
  const auto all_call = is_logarithm ? tuned_all_log_softmax : tuned_all_softmax;
  const SoftmaxSpec softmax{.dtype = dtype};
  call(*session_, softmax, in.data(), SoftmaxShape::rows(kRows, kColumns, {kPitch, kPitch}), whole.data(), nullptr);
  const auto r = static_cast<std::size_t>(rank());
  const std::size_t at = static_cast<std::size_t>(kFirst[r]) * element;
  const SoftmaxShape shard = SoftmaxShape::rows(kRows, kFirst[r + 1] - kFirst[r], {kPitch, kPitch});
  const std::byte* const from = (rank() % 2 == 0 ? own : in).as<std::byte>() + at;
  all_call(*session_, *communicator_, softmax, from, shard, own.as<std::byte>() + at, nullptr);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::size_t first = static_cast<std::size_t>(row * kPitch) * element + at;
    const std::size_t length = static_cast<std::size_t>(shard.extents[1]) * element;
    const auto part = [&](const DeviceBuffer& of) {
      return std::vector<std::byte>(of.as<std::byte>() + first, of.as<std::byte>() + first + length);
    };
    expect_near(dtype, part(own), part(whole));
  }
}
INSTANTIATE_TEST_SUITE_P(, AllSoftmax,
                         testing::Values(std::tuple(DType::f32, false), std::tuple(DType::f16, true),
                                         std::tuple(DType::f64, false)));

TEST_F(RanksTest, SoftmaxOfAnInfiniteElementIsNanOnAllRanks) {
  std::vector<float> values(10, 1.0f);
  if (rank() == 0) values[3] = std::numeric_limits<float>::infinity();
  const DeviceBuffer in = upload(values.data(), 40), out(device_, 40);
  tuned_all_softmax(*session_, *communicator_, {}, in.data(), SoftmaxShape::rows(1, 10), out.data(), nullptr);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(std::isnan(out.as<float>()[i])) << i;
}

TEST_F(RanksTest, SoftmaxRefusesWhatItDoesNotKnow) {
  const DeviceBuffer in(device_, 4000);
  const auto call = [&](const SoftmaxSpec& spec, const SoftmaxShape& shape) {
    tuned_all_softmax(*session_, *communicator_, spec, in.data(), shape, in.as<float>() + 1, nullptr);
  };
  EXPECT_THROW(call({.scale = std::numeric_limits<double>::infinity()}, SoftmaxShape::rows(2, 5)), Error);
  EXPECT_THROW(call({}, SoftmaxShape::columns(2, 5)), Error);
  EXPECT_THROW(call({}, SoftmaxShape::rows(2, 5)), Error);  // they overlap
  EXPECT_THROW(call({.dtype = DType::i32}, SoftmaxShape::rows(2, 5)), Error);
}

TEST_F(RanksTest, DotIsThatOfAllRanks) {
  std::vector<float> a(100, static_cast<float>(rank() + 1)), b(100, 2);
  const DeviceBuffer first = upload(a.data(), 400), second = upload(b.data(), 400), out(device_, 4);
  const ReduceSpec spec{.op = ReduceOp::dot, .dtype = DType::f32};
  tuned_all_dot(*session_, *communicator_, spec, first.data(), second.data(), 100, out.data(), nullptr);
  const int n = ranks();
  EXPECT_EQ(*out.as<float>(), static_cast<float>(200 * (n * (n + 1) / 2)));
}

TEST_F(RanksTest, FirstOfEqualElementsIsLocated) {
  const std::vector<float> ones(10, 1);
  const DeviceBuffer in = upload(ones.data(), 40), out(device_, 8);
  const bool is_empty = rank() == 0;
  tuned_all_reduce(*session_, *communicator_, argmax, in.as<float>(), is_empty ? 0 : 10, out.as<std::int64_t>(),
                   nullptr);
  EXPECT_EQ(*out.as<std::int64_t>(), 0);  // of rank 1: rank 0 has none
  std::vector<float> last = ones;
  if (rank() == ranks() - 1) last[7] = 2;
  const DeviceBuffer other = upload(last.data(), 40);
  tuned_all_reduce(*session_, *communicator_, argmax, other.as<float>(), 10, out.as<std::int64_t>(), nullptr);
  EXPECT_EQ(*out.as<std::int64_t>(), 10 * (ranks() - 1) + 7);
}

TEST_F(RanksTest, NothingAnywhereHasNoIndexAndNoMean) {
  const DeviceBuffer out(device_, 8);
  tuned_all_reduce(*session_, *communicator_, argmin, static_cast<float*>(nullptr), 0, out.as<std::int64_t>(),
                   nullptr);
  EXPECT_EQ(*out.as<std::int64_t>(), -1);
  tuned_all_reduce(*session_, *communicator_, mean, static_cast<float*>(nullptr), 0, out.as<float>(), nullptr);
  EXPECT_TRUE(std::isnan(*out.as<float>()));
}

TEST_F(RanksTest, BitsAreTheSameFromCallToCall) {
  const std::vector<float> values = random_values<float>(1000, static_cast<unsigned>(rank()));
  const DeviceBuffer in = upload(values.data(), 4000), out(device_, 4);
  float first = 0;
  for (int i = 0; i < 100; ++i) {
    tuned_all_reduce(*session_, *communicator_, sum, in.as<float>(), 1000, out.as<float>(), nullptr);
    if (i == 0) first = *out.as<float>();
    ASSERT_EQ(*out.as<float>(), first);
  }
  expect_equal_bits(&first, sizeof(first));
}

TEST_F(RanksTest, TextsOfAnyLengthAreExchanged) {
  const std::string mine(static_cast<std::size_t>(rank()) * 1000, static_cast<char>('a' + rank()));
  const std::vector<std::string> texts = communicator_->exchange(*device_, mine);
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(ranks()));
  for (std::size_t r = 0; r < texts.size(); ++r) EXPECT_EQ(texts[r], std::string(r * 1000, static_cast<char>('a' + r)));
}

}  // namespace
}  // namespace hone
