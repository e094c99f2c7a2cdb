// Searches in the spaces of examples/kernels/, whose model knows nothing but bytes and waves: how far their winners are
// behind the best of all policies, and how many they measure. Times follow laws with the shape of what GPUs do: too few
// bytes in flight, waves that are not full, bank conflicts, reuse of registers, and chance.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <hone/kernel_spec.h>
#include <hone/sdk/known_gpus.h>
#include <hone/tunable_kernel.h>
#include <hone/tuning.h>

#include "tests/runtime/support/fake_device.h"

namespace hone {
namespace {

using Values = std::map<std::string, double, std::less<>>;

/// The values of "#define name value" lines.
Values values_of(std::string_view source) {
  Values values;
  constexpr std::string_view kDefine = "#define ";
  for (std::size_t at = source.find(kDefine); at != std::string_view::npos; at = source.find(kDefine, at + 1)) {
    const std::string_view line = source.substr(at + kDefine.size(), source.find('\n', at) - at - kDefine.size());
    const std::string_view value = line.substr(line.find(' ') + 1);
    double number = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), number).ec == std::errc{})
      values[std::string(line.substr(0, line.find(' ')))] = number;
  }
  return values;
}

/// ±1, the same for the same values.
double noise(const Values& values, unsigned seed) {
  std::uint64_t hash = 0xcbf29ce484222325u + seed;
  for (const auto& [name, value] : values)
    hash = (hash ^ static_cast<std::uint64_t>(value + 7)) * 0x100000001b3u ^ (hash >> 29);
  return static_cast<double>(hash >> 8 & 2047) / 1024 - 1;
}

constexpr double kSms = 132, kThreads = 2048;

/// The time of the blocks in waves over that of all SMs being busy.
double tail(double blocks, double block_threads, double most_blocks = 32) {
  const double slots = kSms * std::max(1.0, std::min(std::floor(kThreads / block_threads), most_blocks));
  return std::ceil(blocks / slots) / (blocks / slots) * 0.3 + 0.7;
}

double axpy_us(const Values& v, double n) {
  const double threads = v.at("block_threads"), elements = v.at("unroll") * v.at("vector");
  const double resident = std::floor(kThreads / threads) * threads;
  const double in_flight = resident * elements * 8;
  const double memory_us = 12 * n / 2.8e6;
  const double shortfall = std::pow(std::max(1.0, 40e3 / in_flight), 0.7);
  return 2 + memory_us * shortfall * tail(n / (threads * elements), threads) * (v.at("vector") == 1 ? 1.03 : 1);
}

double stencil_us(const Values& v, double n) {
  const double x = v.at("block_x"), y = v.at("block_y"), rows = v.at("rows");
  const double halo = (x + 2) * (y * rows + 2) / (x * y * rows);
  const double sectors = std::ceil((x + 2) * 4 / 32 + 1) * 32 / (x * 4);
  const double memory_us = 4 * n * (1 + (halo * 0.3 + 0.7) * (sectors * 0.2 + 0.8)) / 2.6e6;
  const double barrier = 1 + 0.02 * std::log2(x * y / 64) / rows;
  return 2 + memory_us * barrier * tail(n / (x * y * rows), x * y);
}

double convolution_us(const Values& v, double n) {
  const double x = v.at("block_x"), y = v.at("block_y"), tx = v.at("tile_x"), ty = v.at("tile_y");
  const double smem = 4 * ((x * tx + 16 + v.at("padding")) * (y * ty + 16) + 289);
  const double blocks = std::floor(std::min({227e3 / smem, kThreads / (x * y), 32.0}));
  const double occupancy = std::min(1.0, blocks * x * y * std::sqrt(tx * ty) / 900);
  const double loads = 1 + 1 / (tx * ty) * 1.6;
  const double registers = tx * ty > 16 ? 1.8 : 1;
  const double conflicts = x < 32 && v.at("padding") == 0 ? 1.35 : 1;
  const double halo = (x * tx + 16) * (y * ty + 16) / (x * tx * y * ty);
  const double us = n * 289 * 2 / 50e6 * loads * conflicts * registers / std::pow(occupancy, 0.8) * (1 + 0.01 * halo);
  return 3 + us * tail(n / (x * y * tx * ty), x * y, blocks) * (v.at("read_only") == 1 ? 0.99 : 1);
}

struct Space {
  TunableKernel kernel;
  KernelExtents extents;
  std::function<double(const Values&)> us;
};

std::vector<Space> spaces() {
  const std::filesystem::path folder = HONE_KERNELS_FOLDER;
  const TunableKernel axpy(
      {.file = folder / "axpy.cu",
       .parameters = {ordinal("block_threads", {256, 64, 96, 128, 192, 320, 384, 448, 512, 640, 768, 896, 1024}),
                      ordinal("unroll", {4, 1, 2, 8}), ordinal("vector", {4, 1, 2})},
       .arguments = {scalar<float>("a"), in<float>("x"), inout<float>("y"), extent<int>("n")},
       .elements_per_thread = {"unroll * vector"},
       .alignment = 16});
  const std::vector<KernelArgument> image{in<float>("in"), out<float>("out"), extent<int>("width"),
                                          extent<int>("height")};
  const TunableKernel stencil(
      {.file = folder / "stencil.cu",
       .parameters = {ordinal("block_x", {32, 16, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256}),
                      ordinal("block_y", {8, 1, 2, 4, 16, 32}), ordinal("rows", {1, 2, 4, 8})},
       .where = {"64 <= block_x * block_y <= 1024"},
       .extents = {"width", "height"},
       .arguments = image,
       .block = {"block_x", "block_y"},
       .elements_per_thread = {"1", "rows"},
       .dynamic_smem_bytes = "4 * (block_x + 2) * (block_y * rows + 2)"});
  const TunableKernel convolution(
      {.file = folder / "convolution.cu",
       .parameters = {ordinal("block_x", {32, 16, 48, 64, 96, 128}), ordinal("block_y", {8, 4, 2, 16}),
                      ordinal("tile_x", {2, 1, 4, 8}), ordinal("tile_y", {2, 1, 4}),
                      categorical("padding", {"0", "1"}), categorical("read_only", {"0", "1"})},
       .where = {"padding == 0 or block_x % 32 != 0", "64 <= block_x * block_y <= 1024",
                 "4 * ((block_x * tile_x + 16 + padding) * (block_y * tile_y + 16) + 289) <= 49152"},
       .extents = {"width", "height"},
       .arguments = {in<float>("in", "(width + 16) * (height + 16)"), in<float>("filter", "289"),
                     out<float>("out"), extent<int>("width"), extent<int>("height")},
       .block = {"block_x", "block_y"},
       .elements_per_thread = {"tile_x", "tile_y"}});
  std::vector<Space> all;
  for (const double n : {0x1p20, 0x1p24, 0x1p27})
    all.push_back({axpy, static_cast<std::int64_t>(n), [n](const Values& v) { return axpy_us(v, n); }});
  for (const auto& [width, height] : {std::pair{1024, 1024}, {4096, 4096}, {16384, 8192}})
    all.push_back({stencil, {width, height}, [n = 1.0 * width * height](const Values& v) { return stencil_us(v, n); }});
  for (const auto& [width, height] : {std::pair{1024, 1024}, {4096, 4096}})
    all.push_back({convolution, {width, height}, [n = 1.0 * width * height](const Values& v) {
                     return convolution_us(v, n);
                   }});
  return all;
}

TEST(OwnKernelSearches, AFifthOfTheSpaceIsEnoughForAFewPercent) {
  const KnownGpu* const h100 = find_known_gpu("h100");
  ASSERT_NE(h100, nullptr);
  double worst = 0, sum = 0;
  int searches = 0;
  for (const Space& space : spaces())
    for (const unsigned seed : {1u, 2u, 3u}) {
      const Problem problem = space.kernel.problem(space.extents, 16);
      const auto us_of = [&](std::string_view source) {
        const Values values = values_of(source);
        return space.us(values) * (1 + 0.005 * noise(values, seed));
      };
      double best_us = std::numeric_limits<double>::infinity();
      int valid = 0;
      for (const Policy& policy : problem.family->space().all()) {
        if (!problem.family->is_valid(problem, policy, h100->facts).empty()) continue;
        ++valid;
        best_us = std::min(best_us, us_of(problem.family->unit(problem, policy).source));
      }
      const auto device = std::make_shared<FakeDevice>(h100->facts);
      device->script = [&](std::string_view source) { return FakeKernel{.us = us_of(source), .computes = false}; };
      const Tuning tuning = tune(device, problem, {.budget = std::chrono::minutes(2), .verify = false});
      ASSERT_TRUE(tuning.winner);
      const auto measured = std::count_if(tuning.trials.begin(), tuning.trials.end(),
                                          [](const Trial& trial) { return trial.samples > 0; });
      const Policy& winner = tuning.trials[*tuning.winner].candidate.policy;
      const double regret = us_of(problem.family->unit(problem, winner).source) / best_us - 1;
      const std::string which =
          fmt::format("{} of {}, seed {}: {:.2f} % behind, {} of {} measured ({})", problem.family->name(),
                      problem.extents[0], seed, 100 * regret, measured, valid, name(tuning.search_end));
      EXPECT_LE(measured, 0.2 * valid) << which;
      worst = std::max(worst, regret);
      EXPECT_LE(regret, 0.03) << which;
      sum += regret;
      ++searches;
    }
  EXPECT_LE(sum / searches, 0.015) << "worst " << worst;
}

}  // namespace
}  // namespace hone
