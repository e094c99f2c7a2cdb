// Every intrinsic of the prelude that is more than a call of the C library, against values worked out by hand or by
// CUDA's definition of it.
#include "tests/runtime/host_device/host_kernel.h"

#include <cmath>
#include <limits>

namespace hone::test {
namespace {

template <class T>
struct Expression {
  const char* text;
  T value;
};

/// Evaluates all expressions in one kernel, with `zero` as a value that the compiler does not know.
template <class T>
void expect_values(const std::string& type, const std::vector<Expression<T>>& expressions) {
  const auto device = make_host_device();
  std::string source = "using T = " + type + ";\nextern \"C\" __global__ void entry(T* out, int zero) {\n";
  for (std::size_t i = 0; i < expressions.size(); ++i)
    source += "  out[" + std::to_string(i) + "] = static_cast<T>(" + expressions[i].text + ");\n";
  const HostKernel kernel(device, source + "}\n");
  const DeviceVector<T> out(device, std::vector<T>(expressions.size()));
  kernel.launch({.block = {1}}, out.data(), 0);
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const T found = out.values()[i], expected = expressions[i].value;
    EXPECT_TRUE(found == expected || (found != found && expected != expected))
        << expressions[i].text << " is " << found << ", not " << expected;
  }
}

TEST(HostIntrinsics, BitsOfIntegers) {
  expect_values<long long>("long long", {
      {"__popc(0xf0f0f0f1u + zero)", 17},
      {"__popcll(0xf00000000000000full + zero)", 8},
      {"__clz(zero)", 32},
      {"__clz(1 + zero)", 31},
      {"__clz(-1 + zero)", 0},
      {"__clzll(zero)", 64},
      {"__clzll((1ll << 40) + zero)", 23},
      {"__ffs(zero)", 0},
      {"__ffs(8 + zero)", 4},
      {"__ffsll((1ll << 40) + zero)", 41},
      {"__brev(1u + zero)", 0x80000000},
      {"__brev(0x12345678u + zero)", 0x1e6a2c48},
      {"__brevll(1ull + zero) == 1ull << 63", 1},
      {"__umulhi(0xffffffffu + zero, 0xffffffffu)", 0xfffffffe},
      {"__mulhi(-2 + zero, 0x40000000)", -1},
      {"__umul64hi(~0ull + zero, ~0ull) == ~1ull", 1},
      {"__mul64hi(-1ll + zero, 5)", -1},
      {"__funnelshift_l(0x89abcdefu + zero, 0x01234567u, 8)", 0x23456789},
      {"__funnelshift_r(0x89abcdefu + zero, 0x01234567u, 8)", 0x6789abcd},
      {"__byte_perm(0x33221100u + zero, 0x77665544u, 0x7531)", 0x77553311},
      {"__byte_perm(0x33221100u + zero, 0x77665544u, 0x0123)", 0x00112233},
      {"__byte_perm(0x33221100u + zero, 0x77665544u, 0x0008)", 0x00000000},
  });
}

TEST(HostIntrinsics, PartsOfAWord) {
  expect_values<long long>("long long", {
      // Signed bytes 1, −1, 127, −128 against −128, 1, −1, 0.
      {"__vmaxs4(0x807fff01u + zero, 0x00ff0180u)", 0x007f0101},
      {"__vmins4(0x807fff01u + zero, 0x00ff0180u)", 0x80ffff80},
      {"__vmaxu4(0x807fff01u + zero, 0x00ff0180u)", 0x80ffff80},
      {"__vminu4(0x807fff01u + zero, 0x00ff0180u)", 0x007f0101},
      {"__vadd4(0x01ff7f80u + zero, 0x01010180u)", 0x02008000},
      {"__vsub4(0x01000080u + zero, 0x02010001u)", 0xffff007f},
      {"__vcmpeq4(0x01020304u + zero, 0x01ff0300u)", 0xff00ff00},
      {"__vmaxs2(0x80000001u + zero, 0x7fffffffu)", 0x7fff0001},
      {"__vmins2(0x80000001u + zero, 0x7fffffffu)", 0x8000ffff},
      {"__vmaxu2(0x80000001u + zero, 0x7fffffffu)", 0x8000ffff},
      {"__vminu2(0x80000001u + zero, 0x7fffffffu)", 0x7fff0001},
      {"__vadd2(0xffff0001u + zero, 0x00010001u)", 0x00000002},
      {"__dp4a(0x01ff7f80, 0x02030405 + zero, 7)", 7 + 1 * 2 - 1 * 3 + 127 * 4 - 128 * 5},
      {"__dp4a(0x01ff7f80u, 0x02030405u + zero, 7u)", 7 + 1 * 2 + 255 * 3 + 127 * 4 + 128 * 5},
      {"__dp4a(-0x7f7f7f80 + zero, -0x7f7f7f80, 0x7fffffff)", 0x7fffffff + 4LL * 128 * 128 - (1LL << 32)},
      {"__dp4a(make_char4(1, -1, 2, -2), make_char4(10, 20, 30, 40), zero)", 10 - 20 + 60 - 80},
      {"__dp4a(make_uchar4(1, 255, 2, 254), make_uchar4(10, 20, 30, 40), 0u + zero)", 10 + 5100 + 60 + 10160},
  });
}

TEST(HostIntrinsics, ConversionsToIntegersRoundAndSaturate) {
  expect_values<long long>("long long", {
      {"__float2int_rn(2.5f + zero)", 2},
      {"__float2int_rn(-3.5f + zero)", -4},
      {"__float2int_rz(-2.9f + zero)", -2},
      {"__float2int_rd(-2.1f + zero)", -3},
      {"__float2int_ru(2.1f + zero)", 3},
      {"__float2int_rz(3e9f + zero)", 2147483647},
      {"__float2int_rz(-3e9f + zero)", -2147483648LL},
      {"__float2int_rz(__int_as_float(0x7fc00000 + zero))", 0},
      {"__float2uint_rz(-1.0f + zero)", 0},
      {"__float2uint_rz(5e9f + zero)", 4294967295},
      {"__float2uint_rn(4294967040.0f + zero)", 4294967040},
      {"__float2ll_rz(1e30f + zero)", std::numeric_limits<long long>::max()},
      {"__double2ll_rz(-1e300 + zero)", std::numeric_limits<long long>::min()},
      {"__double2int_rn(2147483647.4 + zero)", 2147483647},
      {"__double2ull_rz(1e30 + zero) == ~0ull", 1},
      {"__double2hiint(-2.0 + zero)", static_cast<int>(0xc0000000)},
      {"__double2loint(__longlong_as_double(0x3ff0000012345678ll + zero))", 0x12345678},
  });
}

TEST(HostIntrinsics, Floats) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  expect_values<float>("float", {
      // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: rounding the product loses the last term, a multiply-add keeps it.
      {"fmaf(1.000244140625f + zero, 1.000244140625f, -1.00048828125f)", 0x1p-24f},
      {"fma(1.000244140625f + zero, 1.000244140625f, -1.00048828125f)", 0x1p-24f},
      {"__fmaf_rn(1.000244140625f + zero, 1.000244140625f, -1.00048828125f)", 0x1p-24f},
      {"__fadd_rn(__fmul_rn(1.000244140625f + zero, 1.000244140625f), -1.00048828125f)", 0},
      {"__fsub_rn(3.0f + zero, 1.0f)", 2},
      {"__fdiv_rn(1.0f + zero, 3.0f)", 1.0f / 3.0f},
      {"__frcp_rn(4.0f + zero)", 0.25f},
      {"__fsqrt_rn(9.0f + zero)", 3},
      {"__frsqrt_rn(4.0f + zero)", 0.5f},
      {"__fdividef(1.0f + zero, 8.0f)", 0.125f},
      {"__saturatef(-1.0f + zero)", 0},
      {"__saturatef(0.25f + zero)", 0.25f},
      {"__saturatef(7.0f + zero)", 1},
      {"__saturatef(__int_as_float(0x7fc00000 + zero))", 0},
      {"expf(1.0f + zero)", std::exp(1.0f)},
      {"exp2f(-3.0f + zero)", 0.125f},
      {"exp2(5.0f + zero)", 32},
      {"exp10f(2.0f + zero)", 100},
      {"__expf(0.5f + zero)", std::exp(0.5f)},
      {"expf(-__int_as_float(0x7f800000 + zero))", 0},
      {"logf(2.0f + zero)", std::log(2.0f)},
      {"log(__int_as_float(0x7f800000 + zero))", inf},
      {"logf(-1.0f + zero)", nan},
      {"log2f(1024.0f + zero)", 10},
      {"__logf(3.0f + zero)", std::log(3.0f)},
      {"__log2f(0.5f + zero)", -1},
      {"log1pf(1e-6f + zero)", std::log1p(1e-6f)},
      {"expm1f(1e-6f + zero)", std::expm1(1e-6f)},
      {"sqrtf(2.0f + zero)", std::sqrt(2.0f)},
      {"sqrt(2.0f + zero)", std::sqrt(2.0f)},
      {"rsqrtf(16.0f + zero)", 0.25f},
      {"fmaxf(__int_as_float(0x7fc00000 + zero), 1.0f)", 1},
      {"fminf(1.0f + zero, __int_as_float(0x7fc00000))", 1},
      {"tanhf(0.5f + zero)", std::tanh(0.5f)},
      {"erff(0.5f + zero)", std::erf(0.5f)},
      {"ldexpf(3.0f + zero, 4)", 48},
      {"copysignf(3.0f + zero, -0.0f)", -3},
      {"__uint2float_rn(16777217u + zero)", 16777216},
  });
}

TEST(HostIntrinsics, Doubles) {
  expect_values<double>("double", {
      {"fma(1.0 + 0x1p-30 + zero, 1.0 + 0x1p-30, -1.0 - 0x1p-29)", 0x1p-60},
      {"__fma_rn(1.0 + 0x1p-30 + zero, 1.0 + 0x1p-30, -1.0 - 0x1p-29)", 0x1p-60},
      {"__dadd_rn(__dmul_rn(1.0 + 0x1p-30 + zero, 1.0 + 0x1p-30), -1.0 - 0x1p-29)", 0},
      {"sqrt(2.0 + zero)", std::sqrt(2.0)},
      {"rsqrt(4.0 + zero)", 0.5},
      {"exp(1.0 + zero)", std::exp(1.0)},
      {"log(3.0 + zero)", std::log(3.0)},
      {"exp2(0.5 + zero)", std::exp2(0.5)},
      {"min(1.0f + zero, 2.0)", 1},
      {"max(1.0 + zero, 2.5f)", 2.5},
      {"__hiloint2double(0x40000000 + zero, 0)", 2},
  });
}

TEST(HostIntrinsics, MinAndMaxPickTheTypesThatCudaPicks) {
  expect_values<long long>("long long", {
      {"min(3 + zero, -4)", -4},
      {"max(3u + zero, 4u)", 4},
      {"max(-1 + zero, 4u)", 4294967295},
      {"min(-1ll + zero, 4ll)", -1},
      {"max(-1l + zero, 4l)", 4},
      {"max(-1ll + zero, 4ull) == ~0ull", 1},
      {"min(4ull, 5ull + zero)", 4},
  });
}

TEST(HostIntrinsics, ClassesOfFloats) {
  expect_values<int>("int", {
      {"isnan(__int_as_float(0x7fc00000 + zero))", 1},
      {"isnan(1.0f + zero)", 0},
      {"isinf(__int_as_float(0x7f800000 + zero))", 1},
      {"isinf(-__longlong_as_double(0x7ff0000000000000ll + zero))", 1},
      {"isfinite(__int_as_float(0x7f800000 + zero))", 0},
      {"isfinite(1.0 + zero)", 1},
      {"isfinite(__longlong_as_double(0x7ff8000000000000ll + zero))", 0},
      {"signbit(-0.0f * (1 + zero))", 1},
  });
}

TEST(HostIntrinsics, LoadsAndStoresWithACacheHint) {
  const auto device = make_host_device();
  const HostKernel kernel(device, R"(
extern "C" __global__ void entry(const int4* in, int4* out) {
  __stcs(out, __ldcs(in));
  __stcg(out + 1, __ldg(in + 1));
  __stwb(out + 2, __ldcg(in + 2));
  __stwt(out + 3, __ldca(in + 3));
  out[4] = __ldlu(in + 4);
  out[5].x = __ldcv(&in[5].x);
})");
  struct alignas(16) Int4 {
    int x, y, z, w;
    bool operator==(const Int4&) const = default;
  };
  const std::vector<Int4> values{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16},
                                 {17, 18, 19, 20}, {21, 0, 0, 0}};
  const DeviceVector<Int4> in(device, values), out(device, std::vector<Int4>(6));
  kernel.launch({.block = {1}}, static_cast<const Int4*>(in.data()), out.data());
  EXPECT_EQ(out.values(), values);
}

}  // namespace
}  // namespace hone::test
