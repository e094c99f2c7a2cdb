#include "tuner/check/gpu_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>
#include <hone/sdk/gpu_kernel.h>
#include <hone/sdk/known_gpus.h>
#include <hone/sdk/occupancy.h>
#include <nlohmann/json.hpp>

#include <ostream>

namespace hone::tuner {
namespace {

int threads_of(const Launch& launch) { return static_cast<int>(launch.block.x * launch.block.y * launch.block.z); }

int resident_blocks_of(const GpuCheck& check, const Launch& launch) {
  return resident_blocks(*check.facts, *check.resources, threads_of(launch), launch.dynamic_smem_bytes);
}

std::string occupancy_text(const GpuCheck& check, const CheckOptions& options, const Launch& launch) {
  if (options.block.empty()) return "give --block to see it";
  if (!check.facts)
    return fmt::format("unknown for this architecture; known are {}", fmt::join(known_architectures(), ", "));
  const int blocks = resident_blocks_of(check, launch), threads = threads_of(launch);
  return fmt::format("{} blocks of {} threads an SM: {} of {} threads, {:.0f} %", blocks, threads, blocks * threads,
                     check.facts->max_threads_per_sm, 100.0 * blocks * threads / check.facts->max_threads_per_sm);
}

/// True for what a machine without NVRTC says, and not for an architecture that NVRTC does not know.
bool lacks_nvrtc(const Error& error) {
  return error.code() == ErrorCode::unsupported && GpuCompiler().identity().empty();
}

}  // namespace

GpuCheck check_for_gpu(const Unit& unit, const CheckOptions& options) {
  GpuCheck check{.facts = architecture_facts(options.architecture)};
  try {
    check.resources = gpu_resources(unit, options.architecture);
  } catch (const Error& error) {
    // A template has no kernel before it is instantiated, which NVRTC is not asked for.
    const std::string& entry = unit.entries.front();
    const bool is_template = error.code() == ErrorCode::not_found && entry.find('<') != std::string::npos;
    if (error.code() == ErrorCode::not_found && !is_template) {
      throw CommandError(ExitCode::usage, fmt::format("{}; if it is a template, name its arguments, like "
                                                      "--entry '{}<float>'",
                                                      error.what(), entry));
    }
    if (!lacks_nvrtc(error) && !is_template) throw;
    check.not_looked_at = is_template ? "a template has no figures of its own" : error.what();
  }
  return check;
}

std::string compile_for_gpu_or_say_why_not(const Unit& unit, std::string_view architecture) {
  try {
    compile_for_gpu(unit, architecture);
    return "";
  } catch (const Error& error) {
    if (!lacks_nvrtc(error)) throw;
    return error.what();
  }
}

void print_gpu(const GpuCheck& check, const CheckOptions& options, const Launch& launch, std::ostream& out) {
  out << "NVRTC, " << options.architecture << "\n";
  if (!check.resources) {
    out << "  not looked at: " << check.not_looked_at << "\n\n";
    return;
  }
  const Resources& resources = *check.resources;
  out << fmt::format("  registers      {} a thread\n", resources.registers);
  out << fmt::format(
      "  local memory   {} bytes a thread ({})\n", resources.local_bytes,
      resources.local_bytes == 0 ? "nothing is spilled" : "spilled registers, or arrays indexed at run time");
  out << fmt::format("  shared memory  {} bytes a block, and {} dynamic\n", resources.static_smem_bytes,
                     launch.dynamic_smem_bytes);
  out << fmt::format("  occupancy      {}\n\n", occupancy_text(check, options, launch));
}

nlohmann::ordered_json gpu_json(const GpuCheck& check, const CheckOptions& options, const Launch& launch) {
  if (!check.resources) return {{"architecture", options.architecture}, {"not_looked_at", check.not_looked_at}};
  const bool is_known = check.facts && !options.block.empty();
  return {{"architecture", options.architecture},
          {"registers", check.resources->registers},
          {"local_bytes", check.resources->local_bytes},
          {"static_smem_bytes", check.resources->static_smem_bytes},
          {"dynamic_smem_bytes", launch.dynamic_smem_bytes},
          {"resident_blocks",
           is_known ? nlohmann::ordered_json(resident_blocks_of(check, launch)) : nlohmann::ordered_json(nullptr)}};
}

}  // namespace hone::tuner
