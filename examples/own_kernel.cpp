// Tunes a kernel of your own: out[i] = √(x[i]² + y[i]²).
//
// A KernelFamily describes the kernel: its source, its parameters and how to launch it. A Verifier knows the right
// result. Hone then compiles, times, verifies, caches and dispatches the kernel exactly as its own kernels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>

namespace {

constexpr std::string_view kSource = R"(
template <unsigned kBlockThreads, unsigned kUnroll>
__device__ void lengths(const float* x, const float* y, float* out, unsigned n) {
  constexpr unsigned kTile = kBlockThreads * kUnroll;
  for (unsigned tile = blockIdx.x * kTile; tile < n; tile += gridDim.x * kTile) {
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      const unsigned i = tile + u * kBlockThreads + threadIdx.x;
      if (i < n) out[i] = sqrtf(x[i] * x[i] + y[i] * y[i]);
    }
  }
}
)";

/// The compile-time parameters of the kernel, which Hone chooses.
struct LengthsPolicy {
  std::int32_t block_threads;
  std::int32_t unroll;
};

/// Compares results with those of the CPU. Hone fills the inputs with random numbers of [-1, 1), and calls verify()
/// before it stores a winner.
class LengthsVerifier final : public hone::Verifier {
 public:
  std::string verify(const hone::Problem& problem, const hone::Candidate&,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override {
    const auto element = [](const std::vector<std::byte>& bytes, std::size_t i) {
      float value;
      std::memcpy(&value, bytes.data() + i % (bytes.size() / sizeof(float)) * sizeof(float), sizeof(float));
      return value;
    };
    for (std::size_t i = 0; i < static_cast<std::size_t>(problem.extents[0]); ++i) {
      const double expected = std::hypot(double{element(patterns[0], i)}, double{element(patterns[1], i)});
      const double found = element(outputs[0], i);
      if (!(std::abs(found - expected) <= 1e-6 * expected))
        return "element " + std::to_string(i) + " is " + std::to_string(found) + ", not " + std::to_string(expected);
    }
    return "";
  }
};

class Lengths final : public hone::KernelFamily {
 public:
  std::string_view name() const override { return "lengths"; }
  int version() const override { return 1; }
  const hone::ParameterSpace& space() const override { return space_; }
  std::span<const std::string_view> operations() const override { return operations_; }
  std::span<const hone::SourceFile> sources() const override { return sources_; }

  std::string refuse(const hone::Problem& problem) const override {
    if (problem.dtype != hone::DType::f32) return "lengths works on f32";
    return problem.extents[0] >= 0 && problem.extents[0] < 1 << 30 ? "" : "lengths takes 0 to 2^30 elements";
  }

  hone::Reason is_valid(const hone::ProblemClass&, const hone::Policy& policy,
                       const hone::DeviceFacts& facts) const override {
    const bool fits = policy.as<LengthsPolicy>().block_threads <= facts.max_threads_per_block;
    return fits ? "" : "more threads than the device allows in a block";
  }

  hone::Unit unit(const hone::ProblemClass&, const hone::Policy& policy) const override {
    const auto [block_threads, unroll] = policy.as<LengthsPolicy>();
    const std::string threads = std::to_string(block_threads);
    return {.name = "lengths " + space_.to_string(policy),
            .source = "#include \"lengths.cuh\"\n"
                      "extern \"C\" __global__ void __launch_bounds__(" + threads + ")\n"
                      "lengths_f32(const float* x, const float* y, float* out, unsigned n) {\n"
                      "  lengths<" + threads + ", " + std::to_string(unroll) + ">(x, y, out, n);\n}\n",
            .headers = {},
            .entries = {"lengths_f32"}};
  }

  hone::WorkShape shape(const hone::Problem& problem, const hone::Policy& policy) const override {
    const auto [block_threads, unroll] = policy.as<LengthsPolicy>();
    const std::int64_t tile = std::int64_t{block_threads} * unroll;
    return {.block_threads = block_threads,
            .tiles = std::max<std::int64_t>(1, (problem.extents[0] + tile - 1) / tile),
            .bytes_in_flight_per_block = tile * 8};
  }

  std::int64_t bytes_moved(const hone::Problem& problem) const override { return problem.extents[0] * 12; }

  void encode(const hone::Problem& problem, const hone::Candidate& candidate, std::span<void* const> buffers, void*,
              hone::LaunchList& launches) const override {
    hone::Launch& launch = launches.add();
    launch.grid.x = static_cast<unsigned>(
        std::min(candidate.geometry.max_blocks, shape(problem, candidate.policy).tiles));
    launch.block.x = static_cast<unsigned>(candidate.policy.as<LengthsPolicy>().block_threads);
    for (void* buffer : buffers) launch.arguments.push(buffer);
    launch.arguments.push(static_cast<unsigned>(problem.extents[0]));
  }

  std::vector<hone::BufferSpec> buffers(const hone::Problem& problem) const override {
    const std::int64_t n = problem.extents[0];
    return {{"x", true, hone::DType::f32, n}, {"y", true, hone::DType::f32, n}, {"out", false, hone::DType::f32, n}};
  }

  const hone::Verifier& verifier() const override { return verifier_; }

 private:
  hone::ParameterSpace space_ = hone::space_of<LengthsPolicy>(
      hone::PolicyField{&LengthsPolicy::block_threads, hone::ordinal("block_threads", {128, 256, 512})},
      hone::PolicyField{&LengthsPolicy::unroll, hone::ordinal("unroll", {1, 2, 4, 8})});
  std::array<std::string_view, 1> operations_{"length"};
  std::array<hone::SourceFile, 1> sources_{{{"lengths.cuh", std::string(kSource)}}};
  LengthsVerifier verifier_;
};

}  // namespace

int main() try {
  const auto device = hone::Device::open("auto");
  const Lengths lengths;
  hone::Session session(device);

  constexpr std::int64_t n = 1'000'000;
  const std::vector<float> x(n, 3), y(n, 4);
  std::vector<float> out(n);
  const hone::DeviceBuffer x_device(device, n * sizeof(float)), y_device(device, n * sizeof(float)),
      out_device(device, n * sizeof(float));
  const hone::Stream stream = device->create_stream();
  device->copy_to_device(x_device.data(), x.data(), x_device.size_bytes(), stream);
  device->copy_to_device(y_device.data(), y.data(), y_device.size_bytes(), stream);

  const hone::Problem problem{.family = &lengths, .extents = {n, 1, 1}};
  void* const buffers[] = {x_device.data(), y_device.data(), out_device.data()};
  const hone::Choice choice = session.launch(problem, buffers, stream);

  device->copy_to_host(out.data(), out_device.data(), out_device.size_bytes(), stream);
  device->synchronize(stream);
  device->destroy_stream(stream);
  std::printf("%s: √(3² + 4²) = %g, by %s (from: %s)\n", device->facts().name.c_str(), out[n - 1],
              lengths.space().to_string(choice.winner->candidate.policy).c_str(), name(choice.source).data());
} catch (const hone::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
