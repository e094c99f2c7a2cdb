#include "runtime/families/combine_ranks/normalize_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "kernel_templates/normalize_rows.cuh"
#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/expectation.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/softmax/canonical_softmax.h"

namespace hone {
namespace {

struct NormalizePolicy {
  std::int32_t block_threads = 256;
  std::int32_t unroll = 4;  ///< packs that a thread loads before it stores any

  static const ParameterSpace& space() {
    using P = NormalizePolicy;
    static const auto& space =
        never_destroyed(space_of<P>(PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512})},
                                    PolicyField{&P::unroll, ordinal("unroll", {4, 2, 1})}));
    return space;
  }
};

constexpr std::array<std::string_view, 2> kOperations{"softmax", "log_softmax"};

SoftmaxSpec spec_of(const Problem& problem) { return {.dtype = problem.dtype, .result = problem.result}; }

std::int64_t out_bytes(const Problem& problem) {
  return static_cast<std::int64_t>(info(spec_of(problem).result_dtype()).size_bytes);
}

/// Twice the scale, of reproducible shares.
double factor_of(const Problem& problem) { return problem.scalars[0].value_or(2); }

/// Elements of a pack: those of the wider dtype that Problem::alignment holds.
std::int64_t width_of(const Problem& problem) {
  return at_least_one(problem.alignment / std::max(element_bytes(problem), out_bytes(problem)));
}

std::int64_t tiles_per_row(const Problem& problem, const NormalizePolicy& policy) {
  const std::int64_t tile = std::int64_t{policy.block_threads} * policy.unroll * width_of(problem);
  return at_least_one(divide_up(problem.extents[1], tile));
}

Rows rows_of(const Problem& problem, std::size_t array) {
  return {.rows = problem.extents[0],
          .length = problem.extents[1],
          .pitch = pitch_of(problem, array, problem.extents[1])};
}

class NormalizeVerifier final : public Verifier {
 public:
  /// Reproducible shares: other origins, beyond all elements, and other sums for neighbouring rows.
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override {
    if (!is_canonical(problem) || buffer == 0) return Verifier::input_pattern(problem, buffer, kind);
    const bool has_sums = buffer == 2;
    const DType dtype = has_sums ? spec_of(problem).accumulator_dtype() : problem.dtype;
    return with_element_type(dtype, [&]<class T>(T) {
      std::vector<std::byte> bytes(3 * sizeof(T));
      for (int row = 0; row < 3; ++row) {
        const float value = has_sums ? 1.7f * static_cast<float>(row + 1) : 1.5f + static_cast<float>(row);
        const auto element = static_cast<T>(factor_of(problem) < 0 && !has_sums ? -value : value);
        std::memcpy(bytes.data() + static_cast<std::size_t>(row) * sizeof(T), &element, sizeof(T));
      }
      return bytes;
    });
  }

  std::string verify(const Problem& problem, const Candidate&, ArrayBytes patterns, ArrayBytes outputs) const override {
    if (is_canonical(problem)) return verify_bits(problem, patterns, outputs[0]);
    return verify_bounds(problem, patterns, outputs);
  }

 private:
  static std::string verify_bits(const Problem& problem, ArrayBytes patterns, std::span<const std::byte> output) {
    using reduce_reference::decode;
    const SoftmaxSpec spec = spec_of(problem);
    const softmax_reference::Computation computation{.dtype = spec.dtype,
                                                     .result = spec.result_dtype(),
                                                     .accumulator = spec.accumulator_dtype(),
                                                     .is_log = problem.operation == 1};
    const std::vector<long double> origins = decode(spec.dtype, patterns[1]);
    const std::vector<long double> sums = decode(spec.accumulator_dtype(), patterns[2]);
    const auto in_bytes = static_cast<std::size_t>(element_bytes(problem));
    const auto bytes = static_cast<std::size_t>(out_bytes(problem));
    const std::size_t period = patterns[0].size() / in_bytes;
    for (std::int64_t row = 0; row < problem.extents[0]; ++row) {
      const auto r = static_cast<std::size_t>(row) % origins.size();
      const std::vector<std::byte> expected = canonical::softmax_shares(
          computation, factor_of(problem), static_cast<double>(origins[r]), static_cast<double>(sums[r]), patterns[0]);
      for (std::int64_t column = 0; column < problem.extents[1]; ++column) {
        const std::size_t from = static_cast<std::size_t>(row * rows_of(problem, 0).pitch + column) % period;
        const auto to = static_cast<std::size_t>(row * rows_of(problem, 1).pitch + column);
        if (std::memcmp(&expected[from * bytes], &output[to * bytes], bytes) != 0)
          return fmt::format("column {} of row {} is not the reproducible result", column, row);
      }
    }
    return "";
  }

  static std::string verify_bounds(const Problem& problem, ArrayBytes patterns, ArrayBytes outputs) {
    using namespace reduce_reference;
    const SoftmaxSpec spec = spec_of(problem);
    const std::vector<long double> in = decode(spec.dtype, patterns[0]);
    const std::vector<long double> norms = decode(spec.accumulator_dtype(), patterns[1]);
    const std::vector<long double> found = decode(spec.result_dtype(), outputs[0]);
    // A difference is rounded once; expf() is off by 1 ulp, exp() by 1 (CUDA C++ Programming Guide, Mathematical
    // Functions Appendix).
    const long double unit = spec.accumulator_dtype() == DType::f64 ? 0x1p-53L : 0x1p-24L;
    for (std::int64_t row = 0; row < problem.extents[0]; ++row)
      for (std::int64_t column = 0; column < problem.extents[1]; ++column) {
        const auto at = static_cast<std::size_t>(row * rows_of(problem, 0).pitch + column) % in.size();
        const long double y = in[at] - norms[static_cast<std::size_t>(row) % norms.size()];
        const long double exact = problem.operation == 1 ? y : std::exp(y);
        const long double error = problem.operation == 1 ? unit * std::fabs(y) : exact * unit * (std::fabs(y) + 4);
        const auto index = static_cast<std::size_t>(row * rows_of(problem, 1).pitch + column);
        if (std::string wrong = Expectation::near(exact, error, spec.accumulator_dtype())
                                    .compare(spec.result_dtype(), found[index]);
            !wrong.empty())
          return fmt::format("column {} of row {}: {}", column, row, wrong);
      }
    return "";
  }
};

class NormalizeRowsFamily final : public BuiltInFamily {
 public:
  NormalizeRowsFamily()
      : BuiltInFamily({.name = "normalize_rows",
                       .space = NormalizePolicy::space(),
                       .extent_names = {"rows", "columns"},
                       .scalar_names = {"factor"},
                       .operations = kOperations,
                       .kernels = {"normalize_rows.cuh"}}) {}

  bool offers_reproducible(const Problem&) const override { return true; }

  std::string fault_of(const Problem& problem) const override {
    for (const DType dtype : {problem.dtype, spec_of(problem).result_dtype()})
      if (!info(dtype).is_floating() || dtype == DType::f8e4m3)
        return fmt::format("elements and results are f16, bf16, f32 or f64, not {}", info(dtype).name);
    return choice_fault(problem, spec_of(problem).accumulator_dtype());
  }

  Rows rows(const Problem& problem, int array) const override {
    return rows_of(problem, static_cast<std::size_t>(array));
  }

  Reason is_valid(const ProblemClass&, const Policy& policy, const DeviceFacts& facts) const override {
    return check_blocks(facts, policy.as<NormalizePolicy>().block_threads);
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const Problem& problem = problem_class.typical();
    const SoftmaxSpec spec = spec_of(problem);
    const auto normalize = policy.as<NormalizePolicy>();
    return unit_of(
        fmt::format("#include \"normalize_rows.cuh\"\n\n"
                    "using Shares = hone::{}<{}, {}, {}, {}>;\n"
                    "using Kernel = hone::NormalizeRows<Shares, {}, {}, {}>;\n"
                    "static_assert(sizeof(hone::NormalizeArguments) == {}, \"host and device disagree\");\n",
                    is_canonical(problem) ? "CanonicalShares" : "SharesOfNorm", info(spec.dtype).cuda_name,
                    info(spec.accumulator_dtype()).cuda_name, info(spec.result_dtype()).cuda_name,
                    problem.operation == 1, width_of(problem),
                    normalize.block_threads, normalize.unroll, sizeof(NormalizeArguments)),
        {kernel_entry("Kernel::run", normalize.block_threads)});
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const auto normalize = policy.as<NormalizePolicy>();
    return {.block_threads = normalize.block_threads,
            .tiles = at_least_one(problem.extents[0] * tiles_per_row(problem, normalize)),
            .bytes_in_flight_per_block =
                normalize.block_threads * normalize.unroll * width_of(problem) * element_bytes(problem),
            .dependent_launch = true,
            .independent_blocks = true};
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
              LaunchList& launches) const override {
    const auto normalize = candidate.policy.as<NormalizePolicy>();
    const std::int64_t tiles = tiles_per_row(problem, normalize);
    add_launch(launches, std::min(candidate.geometry.max_blocks, problem.extents[0] * tiles), normalize.block_threads,
               NormalizeArguments{.in = buffers[0],
                                  .norms = buffers[buffers.size() - 2],
                                  .origins = is_canonical(problem) ? buffers[1] : nullptr,
                                  .out = buffers.back(),
                                  .rows = static_cast<std::uint64_t>(problem.extents[0]),
                                  .columns = static_cast<std::uint64_t>(problem.extents[1]),
                                  .tiles_per_row = static_cast<std::uint64_t>(tiles),
                                  .in_pitch = rows_of(problem, 0).pitch,
                                  .out_pitch = rows_of(problem, 1).pitch,
                                  .factor = factor_of(problem)});
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const SoftmaxSpec spec = spec_of(problem);
    std::vector<BufferSpec> specs{input("in", spec.dtype, rows_of(problem, 0).elements())};
    if (is_canonical(problem)) specs.push_back(input("origins", spec.dtype, problem.extents[0], 8));
    specs.push_back(input(is_canonical(problem) ? "sums" : "norms", spec.accumulator_dtype(), problem.extents[0], 8));
    specs.push_back(output("out", spec.result_dtype(), rows_of(problem, 1).elements(),
                           width_of(problem) * out_bytes(problem)));
    if (element_bytes(problem) == out_bytes(problem) && rows_of(problem, 0).pitch == rows_of(problem, 1).pitch)
      specs.back().in_place_of = 0;
    return specs;
  }

  const Verifier& verifier() const override {
    static const auto& verifier = never_destroyed<NormalizeVerifier>();
    return verifier;
  }
};

}  // namespace

const KernelFamily& normalize_rows_family() { return the_family<NormalizeRowsFamily>(); }

Problem normalize_rows_problem(const SoftmaxSpec& spec, bool is_logarithm, const SoftmaxShape& shape,
                               std::uint32_t alignment) {
  const std::int64_t columns = shape.extents[1];
  Problem problem{.family = &normalize_rows_family(),
                  .operation = static_cast<std::uint8_t>(is_logarithm ? 1 : 0),
                  .dtype = spec.dtype,
                  .extents = shape.extents,
                  .pitches = named_pitches(shape.pitches, columns, columns)};
  if (spec.result != spec.dtype) problem.result = spec.result;
  if (static_cast<std::size_t>(spec.dtype) >= kDTypes.size() ||
      static_cast<std::size_t>(spec.result_dtype()) >= kDTypes.size())
    return problem;
  // A pack has as many elements on both sides, so the wider dtype decides.
  const bool has_pitch = shape.extents[0] > 1;
  const std::int64_t wider = std::max(element_bytes(problem), out_bytes(problem));
  const std::int64_t width =
      aligned_elements(alignment, wider, {has_pitch ? pitch_of(problem, 0, columns) : 0,
                                          has_pitch ? pitch_of(problem, 1, columns) : 0});
  problem.alignment = static_cast<std::uint32_t>(width == 1 ? element_bytes(problem) : wider * width);
  return problem;
}

Problem canonical_normalize_problem(const SoftmaxSpec& spec, bool is_logarithm, const SoftmaxShape& shape,
                                    std::uint32_t alignment) {
  Problem problem = normalize_rows_problem(spec, is_logarithm, shape, alignment);
  problem.numerics = Numerics::reproducible;
  problem.scalars[0] = softmax_factor(spec);
  return problem;
}

}  // namespace hone
