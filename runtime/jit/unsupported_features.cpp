#include "runtime/jit/unsupported_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <vector>

namespace hone {
namespace {

struct Feature {
  std::string_view name;
  std::string_view instead;
  std::string_view spellings;  ///< identifiers and headers, each between spaces; one that ends in * is a prefix
};

constexpr std::string_view kCooperation =
    "an SM of the host device runs one block at a time, so the blocks of a grid are never all there to wait for each "
    "other (a cooperative launch may have 0 blocks); use __syncthreads(), __syncwarp() and more launches";
constexpr std::string_view kNoHeaders = "kernels must do without CUDA's headers, as NVRTC compiles them too";

// Looked up in order.
constexpr std::array<Feature, 12> kFeatures{{
    {"cooperative groups", kCooperation, " cooperative_groups cooperative_groups.h cooperative_groups/* "},
    {"tensor-core operations", "compute the tile with multiply-adds under #ifdef HONE_HOST_DEVICE",
     " mma.h nvcuda wmma wgmma* __mma* "},
    {"CUDA's 16-bit and 8-bit floats", "use the types of half.cuh, such as hone::Half and hone::BFloat16",
     " cuda_fp16.h cuda_bf16.h cuda_fp8.h __half half __half2 half2 __nv_bfloat16 nv_bfloat16 __nv_bfloat162 "
     "__nv_fp8* "},
    {"CUDA's C++ libraries", kNoHeaders, " cuda/* cub/* thrust/* cute/* cutlass/* cub thrust cutlass cute "},
    {"random numbers of cuRAND", "make the numbers on the host", " curand* "},
    {"textures and surfaces", "read the memory itself",
     " tex1D* tex2D* tex3D* texCubemap* texture surf1D* surf2D* surf3D* cudaTextureObject_t cudaSurfaceObject_t "
     "texture_types.h "},
    {"asynchronous copies", "copy with loads and stores", " __pipeline_* cuda_pipeline.h "},
    {"thread-block clusters", "DeviceFacts::max_cluster_blocks is 0 there", " __cluster* __block_size__ "},
    {"warp operations without _sync", "CUDA has none either since compute capability 7.0; use the form with a mask",
     " __shfl __shfl_up __shfl_down __shfl_xor __any __all __ballot "},
    {"dynamic parallelism", "kernels cannot launch kernels there; launch from the host", " <<< "},
    {"calls of the CUDA runtime", "call it from the host",
     " cudaError_t cudaMalloc cudaFree cudaDevice* cudaStream* "
     "cudaGet* cudaLaunch* cudaMemcpy* cudaMemset* cudaEvent* cudaGrid* cudaTrigger* "},
    {"CUDA's headers", kNoHeaders, " cuda* device_launch_parameters.h vector_types.h math_constants.h sm_* nvrtc* "},
}};

bool is_spelled(const Feature& feature, std::string_view word) {
  for (std::string_view rest = feature.spellings.substr(1); !rest.empty(); rest.remove_prefix(rest.find(' ') + 1)) {
    const std::string_view spelling = rest.substr(0, rest.find(' '));
    if (spelling == word) return true;
    if (spelling.ends_with('*') && word.starts_with(spelling.substr(0, spelling.size() - 1))) return true;
  }
  return false;
}

std::optional<Feature> feature_of(std::string_view word) {
  const auto found = std::find_if(kFeatures.begin(), kFeatures.end(),
                                  [&](const Feature& feature) { return is_spelled(feature, word); });
  return found == kFeatures.end() ? std::nullopt : std::optional(*found);
}

std::string refusal(const Feature& feature, std::string_view word) {
  return fmt::format("{} ({}) are not supported on the host device: {}", feature.name, word, feature.instead);
}

/// The file that a line includes in angle brackets, which is not the unit's own; "" when it does not.
std::string_view included_file(std::string_view line) {
  const auto skip = [&line](std::string_view what) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(what)) return false;
    line.remove_prefix(what.size());
    return true;
  };
  if (!skip("#") || !skip("include") || !skip("<")) return "";
  return line.substr(0, line.find('>'));
}

/// The words that an error is about: what it quotes, the header it misses, and whether its source line launches.
std::vector<std::string> words_of(const std::string& error, std::string_view shown_source) {
  // Never destroyed, as those below: a static Session may compile after main().
  static const auto& patterns = *new std::array{std::regex("'(?:class |struct )?([A-Za-z_][A-Za-z_0-9./]*)"),
                                                std::regex("([^ ]+): No such file or directory")};
  std::vector<std::string> words;
  for (const std::regex& pattern : patterns) {
    for (std::sregex_iterator at(error.begin(), error.end(), pattern), end; at != end; ++at) words.push_back((*at)[1]);
  }
  if (shown_source.find("<<<") != std::string_view::npos || error == "expected primary-expression before '<' token")
    words.emplace_back("<<<");
  return words;
}

}  // namespace

std::string without_cuda_headers(std::string_view source) {
  std::string result;
  while (!source.empty()) {
    const std::string_view line = source.substr(0, source.find('\n'));
    const std::string_view file = included_file(line);
    const auto feature = file.empty() ? std::nullopt : feature_of(file);
    result += feature ? fmt::format("#pragma GCC error \"{}\"", refusal(*feature, file)) : std::string(line);
    source.remove_prefix(line.size());
    if (source.empty()) break;
    result += '\n';
    source.remove_prefix(1);
  }
  return result;
}

std::string large_frame(std::string_view log) {
  static const auto& kLarge = *new std::regex(
      "([^:\n]+:[0-9]+):[0-9]+: error: (?:the frame size of|stack frame size) \\(?([0-9]+)\\)? [^0-9\n]*([0-9]+)");
  std::cmatch parts;
  if (!std::regex_search(log.data(), log.data() + log.size(), parts, kLarge)) return "";
  return fmt::format("{}: the local variables of this function take {} bytes, and the host device has {} for them; use "
                     "smaller local arrays",
                     parts[1].str(), parts[2].str(), parts[3].str());
}

std::string unsupported_feature(std::string_view log) {
  // The assembler, which knows the lines of inline assembly, has no column.
  static const auto& kError = *new std::regex("^([^:\n]+:[0-9]+):(?:[0-9]+: (?:fatal )?error:| Error:) (.*)$");
  static const auto& kAssembly =
      *new std::regex(".*(constraint .*asm|no such instruction|bad instruction|instruction mnemonic).*");
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string line(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
    std::smatch parts;
    if (!std::regex_match(line, parts, kError)) continue;
    const std::string place = parts[1], error = parts[2];
    // By prelude/cuda_on_host.h and without_cuda_headers().
    if (error.find("not supported on the host device: ") != std::string::npos) return place + ": " + error;
    if (std::regex_match(error, kAssembly))
      return place + ": inline PTX (asm) is not supported on the host device: #ifdef HONE_HOST_DEVICE, write C++";
    const std::string_view shown_source = log.substr(0, log.find('\n'));
    for (const std::string& word : words_of(error, shown_source)) {
      if (const auto feature = feature_of(word)) return place + ": " + refusal(*feature, word);
    }
  }
  return "";
}

}  // namespace hone
