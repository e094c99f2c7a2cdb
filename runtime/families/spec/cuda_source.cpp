#include <hone/sdk/cuda_source.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>

#include "runtime/families/spec/spec_family.h"

namespace hone {
namespace {

/// Replaces each file that is included by its text, once.
void append_inlined(std::string_view text, const std::vector<SourceFile>& headers, std::set<std::string_view>& done,
                    std::string& result) {
  constexpr std::string_view kInclude = "#include \"";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with("#line ") || line.starts_with("#pragma once")) continue;
    const std::string_view name = line.starts_with(kInclude)
                                      ? line.substr(kInclude.size(), line.rfind('"') - kInclude.size())
                                      : std::string_view();
    const auto header = std::ranges::find_if(headers, [&](const SourceFile& each) { return each.name == name; });
    if (header == headers.end())
      result += line;
    else if (done.insert(header->name).second)
      append_inlined(header->text, headers, done, result);
  }
  if (!result.empty() && result.back() != '\n') result += '\n';
}

std::string kernels_of(const Problem& problem, const Unit& unit) {
  const std::vector<SourceFile> headers(problem.family->sources().begin(), problem.family->sources().end());
  std::set<std::string_view> done;
  std::string text;
  append_inlined(unit.source, headers, done, text);
  return text;
}

/// Ends the macros of a policy, the lines that a unit of a SpecFamily begins with: their names, such as `unroll`, are
/// those of anything in the program that takes the file in.
std::string macros_ended(std::string_view source) {
  constexpr std::string_view kDefine = "#define ";
  std::string text;
  while (source.starts_with(kDefine)) {
    source.remove_prefix(kDefine.size());
    text += fmt::format("#undef {}\n", source.substr(0, source.find(' ')));
    source.remove_prefix(source.find('\n') + 1);
  }
  return text;
}

/// A name for a variable beside those of the kernel's arguments and extents.
std::string free_name(std::string name, const ParsedSpec& parsed) {
  const auto is_taken = [&] {
    return std::ranges::find(parsed.extent_names, name) != parsed.extent_names.end() ||
           std::ranges::find(parsed.spec.arguments, name, &KernelArgument::name) != parsed.spec.arguments.end();
  };
  while (is_taken()) name += '_';
  return name;
}

/// Returns the code of what cudaLaunchKernelEx() takes beside the arguments.
std::string configuration(std::string_view grid, const Launch& launch, std::string_view config = "config",
                          std::string_view attributes = "attributes", std::string_view stream = "stream") {
  std::string text = fmt::format(
      "  cudaLaunchConfig_t {0}{{}};\n"
      "  cudaLaunchAttribute {1}[2]{{}};\n"
      "  {0}.gridDim = dim3({3});\n"
      "  {0}.blockDim = dim3({4}, {5}, {6});\n"
      "  {0}.dynamicSmemBytes = {7};\n"
      "  {0}.stream = {2};\n"
      "  {0}.attrs = {1};\n",
      config, attributes, stream, grid, launch.block.x, launch.block.y, launch.block.z, launch.dynamic_smem_bytes);
  if (launch.cluster_blocks > 1)
    text += fmt::format(
        "  {1}[{0}.numAttrs].id = cudaLaunchAttributeClusterDimension;\n"
        "  {1}[{0}.numAttrs++].val.clusterDim = {{{2}, 1, 1}};\n",
        config, attributes, launch.cluster_blocks);
  if (launch.cooperative)
    text += fmt::format(
        "  {1}[{0}.numAttrs].id = cudaLaunchAttributeCooperative;\n"
        "  {1}[{0}.numAttrs++].val.cooperative = 1;\n",
        config, attributes);
  else if (launch.dependent_launch)
    text += fmt::format(
        "  {1}[{0}.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
        "  {1}[{0}.numAttrs++].val.programmaticStreamSerializationAllowed = 1;\n",
        config, attributes);
  return text;
}

/// More than 48 KiB of dynamic shared memory, and clusters of more than 8 blocks, have to be asked for.
std::string permissions(std::string_view kernel, const Launch& launch) {
  constexpr std::uint32_t kUsualBytes = 48 * 1024;
  constexpr unsigned kPortableBlocks = 8;
  std::string text;
  const auto set = [&](std::string_view attribute, std::uint32_t value) {
    text += fmt::format(
        "  if (const cudaError_t status = cudaFuncSetAttribute({}, {}, {}); status != cudaSuccess) return status;\n",
        kernel, attribute, value);
  };
  if (launch.dynamic_smem_bytes > kUsualBytes)
    set("cudaFuncAttributeMaxDynamicSharedMemorySize", launch.dynamic_smem_bytes);
  if (launch.cluster_blocks > kPortableBlocks) set("cudaFuncAttributeNonPortableClusterSizeAllowed", 1);
  return text;
}

/// Ends the launch where `condition` holds: nothing is truncated silently.
std::string refusal(std::string_view condition, std::string_view error) {
  return fmt::format("  if ({}) return {};\n", condition, error);
}

/// For every size: the grid is computed from the extents.
std::string launch_of_spec(const SpecFamily& family, const Problem& problem, const Candidate& candidate,
                           const std::string& entry) {
  const ParsedSpec& parsed = family.parsed();
  const ParsedSpec::Variables known = parsed.variables(candidate.policy, problem.extents);
  std::vector<std::string> variables;
  for (std::size_t i = 0; i < known.size(); ++i) variables.push_back(fmt::format("{}LL", known[i]));
  for (std::size_t i = 0; i < parsed.extent_names.size(); ++i)
    variables[Policy::kMaxParameters + i] = parsed.extent_names[i];
  std::string parameters, arguments, refusals;
  for (std::size_t i = 0; i < parsed.spec.arguments.size(); ++i) {
    const KernelArgument& argument = parsed.spec.arguments[i];
    const std::string_view type = info(argument.dtype).cuda_name;
    if (argument.kind == KernelArgument::Kind::extent) {
      const std::string value = parsed.elements[i].cuda_text(variables);
      const std::string held = fmt::format("static_cast<{}>({})", type, value);
      arguments += ", " + held;
      if (!info(argument.dtype).is_floating())
        refusals += refusal(fmt::format("static_cast<long long>({}) != {}", held, value), "cudaErrorInvalidValue");
      continue;
    }
    const std::string_view qualifier = argument.kind == KernelArgument::Kind::in ? "const " : "";
    parameters += argument.is_array() ? fmt::format("{}{}* {}, ", qualifier, type, argument.name)
                                      : fmt::format("{} {}, ", type, argument.name);
    arguments += ", " + argument.name;
  }
  for (const std::string_view extent : parsed.extent_names) parameters += fmt::format("long long {}, ", extent);

  LaunchList launches;
  std::array<void*, Arguments::kCapacity> nowhere{};
  Problem sized = problem;
  for (std::size_t i = 0; i < parsed.extent_names.size(); ++i)
    sized.extents[i] = std::max<std::int64_t>(1, sized.extents[i]);
  family.encode(sized, candidate, nowhere, nullptr, launches);
  const Launch& launch = *launches.begin();
  const std::string stream = free_name("stream", parsed), config = free_name("config", parsed);
  std::string text =
      fmt::format("inline cudaError_t launch_{}({}cudaStream_t {}) {{\n", family.name(), parameters, stream);
  text += refusal(fmt::format("{} < 0", fmt::join(parsed.extent_names, " < 0 || ")), "cudaErrorInvalidValue");
  text += refusal(fmt::format("{} == 0", fmt::join(parsed.extent_names, " == 0 || ")), "cudaSuccess");
  text += refusals;
  const std::array<unsigned, 3> block{launch.block.x, launch.block.y, launch.block.z};
  std::vector<std::string> tiles;
  for (std::size_t axis = 0; axis < parsed.extent_names.size(); ++axis) {
    std::string per_block = std::to_string(block[axis]);
    if (axis < parsed.elements_per_block.size()) per_block = parsed.elements_per_block[axis].cuda_text(variables);
    if (axis < parsed.elements_per_thread.size())
      per_block += " * " + parsed.elements_per_thread[axis].cuda_text(variables);
    const std::string& name =
        tiles.emplace_back(free_name(fmt::format("{}_tiles", parsed.extent_names[axis]), parsed));
    text += fmt::format("  long long {0} = ({1} + {2} - 1) / ({2});\n", name, parsed.extent_names[axis], per_block);
  }
  if (parsed.spec.grid_stride)
    text += fmt::format("  if ({0} > {1}) {0} = {1};  // a persistent grid\n", tiles[0], candidate.geometry.max_blocks);
  if (launch.cluster_blocks > 1)
    text += fmt::format("  {0} = ({0} + {1} - 1) / {1} * {1};  // whole clusters\n", tiles[0], launch.cluster_blocks);
  for (std::size_t axis = 0; axis < tiles.size(); ++axis) {
    text += refusal(fmt::format("{} > {}", tiles[axis], axis == 0 ? Geometry::kMostBlocks : kMostBlocksAside),
                    "cudaErrorInvalidConfiguration");
    tiles[axis] = fmt::format("static_cast<unsigned>({})", tiles[axis]);
  }
  text += permissions(entry, launch) +
          configuration(fmt::format("{}", fmt::join(tiles, ", ")), launch, config,
                        free_name("attributes", parsed), stream);
  return text + fmt::format("  return cudaLaunchKernelEx(&{}, {}{});\n}}\n", config, entry, arguments);
}

/// Addresses that stand for the arrays of a call, so far apart that one tells which array a pointer is into.
constexpr std::uint64_t kSentinel = std::uint64_t{1} << 44;
constexpr std::size_t kMostSentinels = 64;

/// One argument of a launch as bytes in which the pointers are set when it is launched.
std::string argument_text(const Arguments& arguments, int index, const std::string& name,
                          const std::vector<std::string>& pointers) {
  const auto size = static_cast<std::size_t>(arguments.bytes(index));
  const auto* const bytes = static_cast<const unsigned char*>(arguments.value(index));
  std::vector<unsigned> values(bytes, bytes + size);
  std::string patches;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof(word));
    const std::uint64_t array = (word + kSentinel / 2) / kSentinel;
    if (array < 1 || array > pointers.size()) continue;
    const auto offset = static_cast<std::int64_t>(word - array * kSentinel);
    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(at), sizeof(word), 0u);
    patches += fmt::format(
        "  pointer = reinterpret_cast<unsigned long long>({}) + {}ull;\n"
        "  memcpy({} + {}, &pointer, sizeof(pointer));\n",
        pointers[array - 1], static_cast<std::uint64_t>(offset), name, at);
  }
  return fmt::format("  alignas(16) unsigned char {}[] = {{{}}};\n{}", name, fmt::join(values, ", "), patches);
}

/// For the problem alone: what its launches pass is known but for the pointers.
std::string launch_of_problem(const Problem& problem, const Candidate& candidate,
                              const std::vector<std::string>& entries) {
  const KernelFamily& family = *problem.family;
  std::vector<std::string> pointers;
  std::string parameters;
  std::vector<void*> buffers;
  const auto add = [&](std::string name, std::string_view qualifier) {
    parameters += fmt::format("{}void* {}, ", qualifier, name);
    pointers.push_back(std::move(name));
    buffers.push_back(reinterpret_cast<void*>(pointers.size() * kSentinel));
  };
  for (const BufferSpec& buffer : family.buffers(problem))
    add(std::string(buffer.name), buffer.is_input && !buffer.is_updated ? "const " : "");
  const std::size_t workspace_bytes = family.workspace_bytes(problem, candidate), arrays = buffers.size();
  if (workspace_bytes > 0) add("workspace", "");
  if (pointers.size() > kMostSentinels)
    throw Error(ErrorCode::unsupported, fmt::format("{} has too many arrays", to_string(problem)));
  LaunchList launches;
  family.encode(problem, candidate, std::span(buffers).first(arrays), workspace_bytes > 0 ? buffers.back() : nullptr,
                launches);
  std::string text =
      fmt::format("/// For {} alone; arrays are aligned to {} bytes.\n", to_string(problem), problem.alignment);
  if (workspace_bytes > 0)
    text += fmt::format(
        "/// `workspace` has {} bytes; before the first launch, its first {} are zero. Launches that may\n"
        "/// run at once need one each.\n",
        workspace_bytes, kWorkspaceHeaderBytes);
  text += fmt::format(
      "inline cudaError_t launch_{}({}cudaStream_t stream) {{\n  unsigned long long pointer = 0;\n"
      "  cudaError_t launched = cudaSuccess;\n",
      family.name(), parameters);
  for (int number = 0; const Launch& launch : launches) {
    const std::string entry =
        fmt::format("reinterpret_cast<const void*>(&{})", entries[static_cast<std::size_t>(launch.entry)]);
    text += "  {\n" + permissions(entry, launch) +
            configuration(fmt::format("{}, {}, {}", launch.grid.x, launch.grid.y, launch.grid.z), launch);
    std::string list;
    for (int i = 0; i < launch.arguments.count(); ++i) {
      const std::string name = fmt::format("argument_{}_{}", number, i);
      text += argument_text(launch.arguments, i, name, pointers);
      list += (list.empty() ? "" : ", ") + name;
    }
    text += fmt::format(
        "  void* arguments[] = {{{}}};\n"
        "  launched = cudaLaunchKernelExC(&config, {}, arguments);\n"
        "  if (launched != cudaSuccess) return launched;\n  }}\n",
        list, entry);
    ++number;
  }
  return text + "  return launched;\n}\n";
}

}  // namespace

void require_cuda_source(const Problem& problem) {
  if (const std::string refusal = problem.family->refuse(problem); !refusal.empty())
    throw Error(ErrorCode::invalid_argument, refusal);
  if (problem.alignment < kMaxAlignment && !dynamic_cast<const SpecFamily*>(problem.family))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: what a launch passes depends on where its arrays begin; write out the kernel for arrays of "
                    "which all rows are aligned to {} bytes, or link Hone, which looks at each call's",
                    to_string(problem), kMaxAlignment));
}

std::string cuda_source(const Problem& problem, const Candidate& candidate, std::string_view comment) {
  require_cuda_source(problem);
  std::string text;
  for (std::string_view rest = comment; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    text.append("// ").append(rest.substr(0, end)).append("\n");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const Unit unit = problem.family->unit(problem, candidate.policy);
  text += "#include <cstring>\n#include <cuda_runtime.h>\n\n";
  if (const auto* spec = dynamic_cast<const SpecFamily*>(problem.family))
    return text + kernels_of(problem, unit) + macros_ended(unit.source) + "\n" +
           launch_of_spec(*spec, problem, candidate, unit.entries.front());
  // A bound of 0 that a template's parameters make constant is none to warn of.
  return text + "#pragma nv_diagnostic push\n#pragma nv_diag_suppress 186\n" + kernels_of(problem, unit) +
         "#pragma nv_diagnostic pop\n\n" + launch_of_problem(problem, candidate, unit.entries);
}

}  // namespace hone
