#include <hone/canonical_reduce.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <hone/custom_reduction.h>
#include <hone/error.h>
#include <hone/kernel_family.h>
#include <hone/rms_norm.h>
#include <hone/softmax_spec.h>

#include "runtime/families/reduce/canonical_math.h"
#include "runtime/families/reduce/canonical_tree.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "tests/runtime/support/expected_bits.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The tree once more, as a recursion over elements: v_s[r] = v_2s[r] + v_2s[r + s], v_C[r] = leaf r of the chunk.
template <class A>
struct Recursion {
  std::span<const A> leaves;
  std::size_t chunk;

  A element(std::size_t i) const { return i < leaves.size() ? leaves[i] : -A(0); }
  A fold(std::size_t first, std::size_t r, std::size_t s) const {
    if (s == chunk) return element(first + r);
    const A low = fold(first, r, 2 * s), high = fold(first, r + s, 2 * s);
    return low + high;
  }
  A node(std::size_t first, std::size_t chunks) const {
    if (chunks == 1) return fold(first * chunk, 0, 1);
    std::size_t left = 1;
    while (2 * left < chunks) left *= 2;
    const A before = node(first, left), after = node(first + left, chunks - left);
    return before + after;
  }
  A sum() const { return leaves.empty() ? A(0) : node(0, (leaves.size() + chunk - 1) / chunk) + A(0); }
};

std::vector<float> magnitudes(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& x : values) {
    const auto exponent = static_cast<int>(random() % 70) - 35;
    const float significand = 1.0f + static_cast<float>(random() % 8388608) * 0x1p-23f;
    x = std::ldexp(random() % 2 == 0 ? significand : -significand, exponent);
  }
  return values;
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

float sum_of(const std::vector<float>& values) { return canonical_reduce(sum, std::span<const float>(values)); }

TEST(CanonicalReduce, IsTheRecursionAroundChunksAndPowersOfTwo) {
  for (const std::size_t n : {0,    1,    2,    3,    31,   32,   33,   511,  512,  513,
                              1023, 1024, 1025, 1535, 2561, 3584, 4095, 4097, 70001}) {
    const std::vector<float> values = magnitudes(n);
    EXPECT_EQ(bits(sum_of(values)), bits(Recursion<float>{values, 512}.sum())) << n;
    std::vector<double> wide(values.begin(), values.end());
    for (double& x : wide) x += x * 0x1p-40;
    EXPECT_EQ(canonical_reduce(sum, std::span<const double>(wide)), (Recursion<double>{wide, 256}.sum())) << n;
    std::vector<half> halves;
    std::vector<float> as_floats;
    for (const float x : values) as_floats.push_back(static_cast<float>(halves.emplace_back(half(x * 0x1p-20f))));
    const float of_halves = canonical_reduce(sum, std::span<const half>(halves));
    EXPECT_EQ(bits(of_halves), bits(Recursion<float>{as_floats, 1024}.sum())) << n;
  }
}

/// The file was written by a second program (expected_bits.py), which shares nothing with the library.
TEST(CanonicalReduce, MeetsTheExpectedBits) {
  for (const ExpectedBits& expected : read_expected_bits()) {
    const std::vector<std::byte> a = expected_bits_elements(expected.spec, 0, expected.n);
    const std::vector<std::byte> b = expected_bits_elements(expected.spec, expected.n, expected.n);
    std::vector<std::byte> found(expected.results.size());
    canonical_reduce(expected.spec, {a.data()}, {b.data()}, expected.n, found.data());
    EXPECT_EQ(found, expected.results)
        << name(expected.spec.op) << " " << info(expected.spec.dtype).name << " " << expected.n;
  }
}

TEST(CanonicalReduce, ChunksAreTwoKibibytesOfElements) {
  EXPECT_EQ(canonical::chunk_elements(DType::f64), 256);
  EXPECT_EQ(canonical::chunk_elements(DType::i32), 512);
  EXPECT_EQ(canonical::chunk_elements(DType::bf16), 1024);
  EXPECT_EQ(canonical::chunk_elements(DType::f8e4m3), 2048);
}

TEST(CanonicalReduce, LeavesAreRoundedByThemselves) {
  const std::vector<float> x{0x1.000002p0f, -1.0f}, squares{0x1.000002p0f * 0x1.000002p0f, 1.0f};
  EXPECT_EQ(canonical_reduce(sum_of_squares, std::span<const float>(x)), sum_of(squares));
  EXPECT_EQ(canonical_reduce(l2_norm, std::span<const float>(x)), std::sqrt(sum_of(squares)));
  EXPECT_EQ(canonical_reduce(l1_norm, std::span<const float>(x)), sum_of({0x1.000002p0f, 1.0f}));
  // Contracted, the rounding error of the first product would be the result.
  const std::vector<float> a{0x1.000002p0f, 0x1.000002p0f}, b{0x1.000002p0f, -0x1.000002p0f};
  float dot = 1;
  canonical_reduce({.op = ReduceOp::dot}, {a.data()}, {b.data()}, 2, &dot);
  EXPECT_EQ(dot, 0);
}

TEST(CanonicalReduce, MeanDividesOnce) {
  const std::vector<float> x = magnitudes(1000);
  EXPECT_EQ(canonical_reduce(mean, std::span<const float>(x)), sum_of(x) / 1000.0f);
  const std::vector<float> some{1, kNan, 4, kNan};
  EXPECT_EQ(canonical_reduce(mean, std::span<const float>(some), NanPolicy::ignore), 2.5f);
}

TEST(CanonicalReduce, NothingIsTheIdentity) {
  const std::span<const float> none;
  EXPECT_EQ(bits(canonical_reduce(sum, none)), bits(0.0f));
  EXPECT_EQ(bits(canonical_reduce(l2_norm, none)), bits(0.0f));
  EXPECT_EQ(canonical_reduce(product, none), 1);
  EXPECT_EQ(canonical_reduce(logsumexp, none), -kInfinity);
  EXPECT_EQ(bits(canonical_reduce(mean, none)), 0x7fc00000u);
  const std::vector<float> nans(1000, kNan);
  EXPECT_EQ(bits(canonical_reduce(sum, std::span<const float>(nans), NanPolicy::ignore)), bits(0.0f));
  EXPECT_EQ(canonical_reduce(product, std::span<const float>(nans), NanPolicy::ignore), 1);
}

TEST(CanonicalReduce, ASumOfNegativeZerosIsZeroAndANaNHasOneSpelling) {
  EXPECT_EQ(bits(sum_of(std::vector<float>(600, -0.0f))), bits(0.0f));
  EXPECT_EQ(bits(sum_of({1, std::bit_cast<float>(0xffc12345u)})), 0x7fc00000u);
  EXPECT_EQ(bits(sum_of({kInfinity, -kInfinity})), 0x7fc00000u);
  EXPECT_EQ(sum_of({kInfinity, 1}), kInfinity);
  const std::vector<float> nan{kNan};
  half narrow;
  canonical_reduce({.result = DType::f16}, {nan.data()}, {}, 1, &narrow);
  EXPECT_EQ(narrow.bits, 0x7e00);
  bfloat16 other;
  canonical_reduce({.result = DType::bf16}, {nan.data()}, {}, 1, &other);
  EXPECT_EQ(other.bits, 0x7fc0);
}

TEST(CanonicalReduce, AResultIsRoundedOnce) {
  // 1 + 2^-11 + 2^-40 is above the middle of two halves; as a float it would be the middle, which is rounded to 1.
  const std::vector<double> x{1.0, 0x1p-11, 0x1p-40};
  half rounded;
  canonical_reduce({.dtype = DType::f64, .result = DType::f16}, {x.data()}, {}, 3, &rounded);
  EXPECT_EQ(static_cast<float>(rounded), 1.0f + 0x1p-10f);
}

TEST(CanonicalReduce, AColumnHasTheBitsOfARow) {
  const std::vector<float> x = magnitudes(3000);
  std::vector<float> matrix(3000 * 7);
  for (std::size_t i = 0; i < x.size(); ++i) matrix[7 * i + 4] = x[i];
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::mean_variance, ReduceOp::logsumexp}) {
    std::array<std::uint32_t, 2> row{}, column{};
    canonical_reduce({.op = op}, {x.data()}, {}, 3000, row.data());
    canonical_reduce({.op = op}, {matrix.data() + 4, 7}, {}, 3000, column.data());
    EXPECT_EQ(row, column) << name(op);
  }
}

/// Ranks that begin at any multiples of a chunk publish few nodes, whose tree is that of the whole.
TEST(CanonicalReduce, NodesOfShardsMakeTheTreeOfAll) {
  constexpr std::size_t kChunk = 512, kChunks = 173;
  const std::vector<float> values = magnitudes(kChunk * kChunks - 77);
  std::mt19937 random(9);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::size_t> cuts{0, kChunks};
    for (int shard = 0; shard < 5; ++shard) cuts.push_back(random() % kChunks);
    std::sort(cuts.begin(), cuts.end());
    std::map<std::pair<std::size_t, std::size_t>, float> nodes;  // by level and index
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      std::size_t published = 0;
      for (std::size_t first = cuts[i]; first < cuts[i + 1]; ++published) {
        std::size_t level = 0;  // the largest node that begins here and ends in the shard, or at the end of all
        while ((first >> level & 1) == 0 && first + (std::size_t{1} << level) < cuts[i + 1]) ++level;
        if (first + (std::size_t{1} << level) > cuts[i + 1] && cuts[i + 1] != kChunks) --level;
        const std::size_t end = std::min(first + (std::size_t{1} << level), kChunks);
        const auto at = values.begin() + static_cast<std::ptrdiff_t>(first * kChunk);
        const auto count = std::min(end * kChunk, values.size()) - first * kChunk;
        nodes[{level, first >> level}] = sum_of({at, at + static_cast<std::ptrdiff_t>(count)});
        first = end;
      }
      EXPECT_LE(published, 2 * 8u);
    }
    for (std::size_t level = 0; level < 8; ++level)
      for (std::size_t index = 0; index << level < kChunks; index += 2) {
        const auto left = nodes.find({level, index}), right = nodes.find({level, index + 1});
        if (left == nodes.end()) continue;
        nodes[{level + 1, index / 2}] = right == nodes.end() ? left->second : left->second + right->second;
      }
    EXPECT_EQ(bits(nodes[{8, 0}]), bits(sum_of(values)));
  }
}

TEST(CanonicalReduce, APatternThatRepeatsHasTheBitsOfItsElements) {
  const std::vector<float> pattern = magnitudes(3);
  std::vector<float> all(512 * 40 + 5);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = pattern[i % 3];
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean_variance}) {
    std::array<float, 2> expected{}, found{};
    canonical_reduce({.op = op}, {all.data()}, {}, static_cast<std::int64_t>(all.size()), expected.data());
    const canonical::Sequence repeated{.bytes = reinterpret_cast<const std::byte*>(pattern.data()), .period = 3};
    canonical::reduce({.op = op}, repeated, {}, static_cast<std::int64_t>(all.size()),
                      reinterpret_cast<std::byte*>(found.data()));
    EXPECT_EQ(expected, found) << name(op);
  }
}

/// A plain loop ends at 33554432, and the chains of a fast winner on the host device were off by 79 ulp.
TEST(CanonicalReduce, AHundredMillionEqualNumbersAreSummedWithinAFewUlp) {
  const float x = 1.23f;
  const canonical::Sequence repeated{.bytes = reinterpret_cast<const std::byte*>(&x), .period = 1};
  float found = 0;
  canonical::reduce({}, repeated, {}, 100'000'000, reinterpret_cast<std::byte*>(&found));
  const double exact = 1e8 * static_cast<double>(x);
  EXPECT_LE(std::fabs(static_cast<double>(found) - exact), 2 * 8.0) << "of 8 to the last place";
}

TEST(CanonicalReduce, MomentsOfEqualNumbersAreExact) {
  std::array<float, 2> found{};
  for (const std::int64_t n : {1, 3, 700, 100'003}) {
    const std::vector<float> x(static_cast<std::size_t>(n), 16777217.0f / 3);
    canonical_reduce({.op = ReduceOp::mean_variance}, {x.data()}, {}, n, found.data());
    EXPECT_EQ(found[0], x[0]) << n;
    EXPECT_EQ(found[1], 0) << n;
  }
}

TEST(CanonicalReduce, MomentsAndExponentialsAreAccurate) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<float> x(50'000);
  for (float& each : x) each = static_cast<float>(4096 + uniform(random));
  long double total = 0, squares = 0, exponentials = 0;
  for (const float each : x) total += each;
  const long double average = total / 50'000;
  for (const float each : x) {
    squares += (each - average) * (each - average);
    exponentials += std::exp(static_cast<long double>(each) - 4096);
  }
  std::array<float, 2> found{};
  canonical_reduce({.op = ReduceOp::mean_variance}, {x.data()}, {}, 50'000, found.data());
  EXPECT_NEAR(found[0], static_cast<double>(average), 4096 * 0x1p-23);
  EXPECT_NEAR(found[1], static_cast<double>(squares / 50'000), 1e-5);
  EXPECT_NEAR(canonical_reduce(logsumexp, std::span<const float>(x)),
              static_cast<double>(std::log(exponentials) + 4096), 4096 * 0x1p-22);
}

template <class A>
void expect_accurate_math() {
  const long double ulp = std::numeric_limits<A>::epsilon();
  std::mt19937_64 random(5);
  EXPECT_EQ(canonical::exponential(A(0)), 1);
  EXPECT_EQ(canonical::logarithm(A(1)), 0);
  EXPECT_EQ(canonical::exponential(-std::numeric_limits<A>::infinity()), 0);
  EXPECT_TRUE(std::isnan(canonical::exponential(std::numeric_limits<A>::quiet_NaN())));
  const A least = canonical::near_exponential(canonical::Constants<A>::kLowestNormal);
  EXPECT_GE(least, std::numeric_limits<A>::min());
  EXPECT_EQ(canonical::near_exponential(-std::numeric_limits<A>::infinity()), least);
  EXPECT_EQ(canonical::near_exponential(std::numeric_limits<A>::quiet_NaN()), least);
  for (int i = 0; i < 100'000; ++i) {
    const A d = -std::uniform_real_distribution<A>(0, i % 2 == 0 ? A(80) : A(1))(random);
    const long double right = std::exp(static_cast<long double>(d));
    EXPECT_LE(std::fabs(canonical::exponential(d) - right), ulp * right) << d;
    const A near = std::uniform_real_distribution<A>(canonical::Constants<A>::kLowestNormal,
                                                     canonical::Constants<A>::kMostNear)(random);
    const long double of_near = std::exp(static_cast<long double>(near));
    EXPECT_LE(std::fabs(canonical::near_exponential(near) - of_near), ulp * of_near) << near;
    const A s = std::exp(std::uniform_real_distribution<A>(A(-0.5), A(40))(random));
    const long double logarithm = std::log(static_cast<long double>(s));
    EXPECT_LE(std::fabs(canonical::logarithm(s) - logarithm), 2 * ulp * std::fabs(logarithm)) << s;
  }
}

TEST(CanonicalMath, ExponentialsAreWithinAnUlpAndLogarithmsWithinTwo) {
  expect_accurate_math<float>();
  expect_accurate_math<double>();
}

TEST(CanonicalReduce, RefusesWhatIsNoReductionOfItsKind) {
  const std::vector<float> x{1};
  float out = 0;
  const auto refusal = [&](const ReduceSpec& spec, std::int64_t n, const HostArray& a, void* to) -> std::string {
    try {
      canonical_reduce(spec, a, {}, n, to);
    } catch (const Error& error) {
      return error.what();
    }
    return "it was accepted";
  };
  EXPECT_THAT(refusal({}, -1, {x.data()}, &out), Names("-1", "negative"));
  EXPECT_THAT(refusal({}, 1, {}, &out), Names("null"));
  EXPECT_THAT(refusal({}, 1, {x.data()}, nullptr), Names("out", "null"));
  EXPECT_THAT(refusal({.op = ReduceOp::dot}, 1, {x.data()}, &out), Names("null"));
  EXPECT_THAT(refusal({.op = ReduceOp::max}, 1, {x.data()}, &out), Names("max", "order"));
  EXPECT_THAT(refusal({.dtype = DType::i32}, 1, {x.data()}, &out), Names("i32", "order"));
  EXPECT_THAT(refusal({.result = DType::i32}, 1, {x.data()}, &out), Names("i32", "stored"));
}

TEST(ReproducibleProblems, AreOthersOnlyWhereAnOrderMatters) {
  const auto numerics = [](ReduceOp op, DType dtype, std::optional<DType> accumulator = {}) {
    return reduce_problem({.op = op, .dtype = dtype, .accumulator = accumulator, .numerics = Numerics::reproducible}, 5)
        .numerics;
  };
  EXPECT_EQ(numerics(ReduceOp::sum, DType::f16), Numerics::reproducible);
  EXPECT_EQ(numerics(ReduceOp::dot, DType::f64), Numerics::reproducible);
  EXPECT_EQ(numerics(ReduceOp::mean, DType::i64), Numerics::reproducible) << "accumulated in f64";
  EXPECT_EQ(numerics(ReduceOp::sum, DType::i8, DType::f32), Numerics::reproducible);
  EXPECT_EQ(numerics(ReduceOp::sum, DType::i8), Numerics::fast);
  EXPECT_EQ(numerics(ReduceOp::mean_variance, DType::u16), Numerics::fast);
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::argmax, ReduceOp::max_norm, ReduceOp::count_nonzero})
    EXPECT_EQ(numerics(op, DType::f32), Numerics::fast) << name(op);
  const ReduceSpec spec{.numerics = Numerics::reproducible};
  EXPECT_EQ(reduce_rows_problem(spec, {.rows = 3, .columns = 4}).numerics, Numerics::reproducible);
  EXPECT_EQ(segmented_reduce_problem(spec, DType::i32, 3, 4).numerics, Numerics::reproducible);
  EXPECT_TRUE(reduce_spec_of(reduce_problem(spec, 5)).is_reproducible());
  EXPECT_EQ(softmax_problem({.numerics = Numerics::reproducible}, SoftmaxShape::rows(3, 4)).numerics,
            Numerics::reproducible);
}

TEST(ReproducibleProblems, AreOfAClassOfTheirOwn) {
  const ProblemClass fast(reduce_problem({}, 5)), exact(reduce_problem({.numerics = Numerics::reproducible}, 5));
  EXPECT_FALSE(fast == exact);
  EXPECT_THAT(fast.difference(exact), Names("numerics", "fast", "reproducible"));
  EXPECT_THAT(to_string(exact), Names("reproducible"));
}

TEST(ReproducibleProblems, AreRefusedByNameWhereThereAreNoKernels) {
  Problem problem = rms_norm_problem({.dtype = DType::f16, .rows = 3, .columns = 4}, true, false);
  EXPECT_EQ(refusal_of(problem), "");
  problem.numerics = Numerics::reproducible;
  EXPECT_THAT(refusal_of(problem), Names("rms_norm", "reproducible", "weighted", "f16", "fast"));
  const CustomReduction cubes({.name = "cubes", .map = "x * x * x", .combine = "a + b", .identity = "0"}, DType::f32);
  Problem custom = cubes.problem(DType::f32, 5);
  EXPECT_EQ(refusal_of(custom), "");
  custom.numerics = Numerics::reproducible;
  EXPECT_THAT(refusal_of(custom), Names("cubes", "reproducible", "contract", "devices", "fast"));
}

TEST(ReproducibleProblems, ACombinationThatIsNotCommutativeIsRefusedWithTwoElementsThatShowIt) {
  const auto refusal = [](const std::string& combine, DType accumulator) {
    const CustomReduction reduction({.name = "own", .map = "x", .combine = combine, .identity = "0"}, accumulator);
    Problem problem = reduction.problem(DType::f32, 5);
    problem.numerics = Numerics::reproducible;
    return refusal_of(problem);
  };
  EXPECT_THAT(refusal("a - b", DType::f32), Names("combine(1, 2)", "-1", "combine(2, 1)", "is 1"));
  EXPECT_THAT(refusal("2 * a + b", DType::i64), Names("combine(1, 2)", "is 4", "combine(2, 1)", "is 5"));
  EXPECT_THAT(refusal("a > b ? a : b", DType::f64), Names("combine(1, nan)", "is nan", "combine(nan, 1)", "is 1"))
      << "NaNs are lost or kept by their place";
  EXPECT_THAT(refusal("b / a", DType::i32), Names("combine(1, 2)", "is 2", "combine(2, 1)", "is 0"))
      << "divisions by zero on the way hide nothing";
  EXPECT_THAT(refusal("a + b", DType::f32), testing::Not(testing::HasSubstr("combine(")));
  EXPECT_THAT(refusal("a + b + 0 / (a & b)", DType::u32), Names("contract"));
  EXPECT_THAT(refusal("a + b + 0 / (a & 0)", DType::u32), Names("contract"));
  EXPECT_THAT(refusal("[&] { for (;;) {} return a; }()", DType::f32), Names("combine()", "did not end"));
}

TEST(CustomReductions, AnIdentityThatIsNoneIsNamedWithTheElementThatShowsIt) {
  const auto fault = [](const ReduceExpressions& expressions, DType dtype, DType accumulator) {
    const Problem problem = CustomReduction(expressions, accumulator).problem(dtype, 5);
    return problem.family->verifier().law_fault(problem);
  };
  const std::string larger = "a > b ? a : b";
  EXPECT_THAT(fault({.name = "own", .combine = larger, .identity = "0"}, DType::f32, DType::f32),
              Names("'own'", "identity", "0", "element -1", "mapped to -1", "combine(identity, x)", "is 0"));
  EXPECT_THAT(fault({.name = "own", .combine = larger, .identity = "-1000"}, DType::i32, DType::i32),
              Names("element -2147483648", "is -1000"));
  EXPECT_THAT(fault({.name = "own", .combine = "a * b", .identity = "2"}, DType::f16, DType::f32),
              Names("element 1", "is 2"));
  EXPECT_THAT(fault({.name = "own", .combine = "a == 3 ? a : b", .identity = "3"}, DType::u8, DType::u32),
              Names("combine(identity, x)", "is 3"));
  EXPECT_EQ(fault({.name = "own", .map = "fabsf(x)", .combine = larger, .identity = "0"}, DType::f32, DType::f32), "");
  EXPECT_EQ(fault({.name = "own", .combine = larger, .identity = "-2147483647 - 1"}, DType::i32, DType::i32), "");
  EXPECT_EQ(fault({.name = "own", .combine = larger, .identity = "-INFINITY"}, DType::f64, DType::f64), "");
  EXPECT_EQ(fault({.name = "own", .map = "600 / x", .combine = "a + b", .identity = "0"}, DType::i32, DType::i32), "")
      << "a division by zero is no fault of the identity";
  EXPECT_EQ(fault({.name = "own", .map = "x ? 1u : 0u", .combine = "a ^ b", .identity = "0"}, DType::i8, DType::u32),
            "");
  EXPECT_EQ(fault({.name = "own",
                   .combine = "a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b))",
                   .identity = "-1e30"}, DType::f32, DType::f64), "");
  EXPECT_EQ(fault({.name = "own", .combine = "unknown", .identity = "0"}, DType::f32, DType::f32), "")
      << "the compiler says what is wrong elsewhere";
}

TEST(ReproducibleProblems, HaveKernelsForColumnsAndSoftmax) {
  const ReduceSpec spec{.op = ReduceOp::mean_variance, .dtype = DType::bf16, .numerics = Numerics::reproducible};
  EXPECT_EQ(refusal_of(reduce_columns_problem(spec, {.outer = 2, .reduced = 3, .inner = 4})), "");
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const SoftmaxShape& shape : {SoftmaxShape::rows(3, 4), SoftmaxShape::axis(2, 3, 4)})
      EXPECT_EQ(
          refusal_of(log_softmax_problem({.dtype = dtype, .scale = -2, .numerics = Numerics::reproducible}, shape)),
          "");
}

TEST(ReproducibleProblems, AreVerifiedInEveryBit) {
  const ReduceSpec spec{.numerics = Numerics::reproducible};
  constexpr std::int64_t kSize = 40'000;
  for (const std::string_view kind : reduce_reference::input_kinds(spec)) {
    const std::vector<std::vector<std::byte>> patterns{reduce_reference::input_pattern(spec, 0, kSize, kind)};
    const auto* const values = reinterpret_cast<const float*>(patterns[0].data());
    std::vector<float> all(kSize);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = values[i % (patterns[0].size() / sizeof(float))];
    float result = sum_of(all);
    const auto fault = [&] {
      return reduce_reference::verify(spec, kSize, 1000, patterns, std::as_bytes(std::span(&result, 1)));
    };
    EXPECT_EQ(fault(), "") << kind;
    result = std::bit_cast<float>(bits(result) ^ 1u);
    EXPECT_NE(fault(), "") << kind;
    if (kind == "uniform") {
      EXPECT_EQ(reduce_reference::verify({}, kSize, 1000, patterns, std::as_bytes(std::span(&result, 1))), "");
    }
  }
}

}  // namespace
}  // namespace hone
