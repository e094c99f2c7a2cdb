#include "runtime/dispatch/buffer_checks.h"

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include "runtime/choose/choose.h"
#include "runtime/dispatch/call_checks.h"

namespace hone {
namespace {

void check_contents(Device& device, const Problem& problem, const std::vector<BufferSpec>& specs,
                    std::span<void* const> buffers, Stream stream) {
  if (device.stream_state(stream).capturing) return;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!specs[i].is_validated) continue;
    std::vector<std::byte> contents(specs[i].size_bytes());
    try {
      device.copy_to_host(contents.data(), buffers[i], contents.size(), stream);
      device.synchronize(stream);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{}: '{}' cannot be read: {}", to_string(problem), specs[i].name, error.what()));
    }
    const std::string refusal = problem.family->refuse_contents(problem, static_cast<int>(i), contents);
    if (!refusal.empty()) refuse_call(to_string(problem), refusal);
  }
}

}  // namespace

void check_memory(const Device& device, std::string_view call, std::string_view name, const void* pointer) {
  const MemoryKind kind = device.memory_kind(pointer);
  if (kind == MemoryKind::device) return;
  if (kind == MemoryKind::peer)
    refuse_call(call, fmt::format("'{}' at {} lies on {}, and the session is one of {}; call a session of the former, "
                                  "or copy the array to {} first",
                                  name, pointer, device.memory_owner(pointer), device.memory_owner(nullptr),
                                  device.name()));
  refuse_call(call, fmt::format("'{}' at {} is host memory; copy it to {} first", name, pointer, device.name()));
}

void check_buffers(Device& device, const SessionOptions& options, const Problem& problem,
                   std::span<void* const> buffers, Stream stream) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i]) refuse_call(to_string(problem), address_fault(fmt::format("buffer {}", i), nullptr, 1));
  if (!options.validate_pointers) return;

  require_accepted(problem);
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  check_count(problem, specs.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& spec = specs[i];
    if (spec.elements == 0) continue;
    const std::size_t alignment = spec.alignment > 0 ? spec.alignment
                                  : spec.is_input    ? problem.alignment
                                                     : info(spec.dtype).size_bytes;
    if (const std::string fault = address_fault(spec.name, buffers[i], alignment); !fault.empty())
      refuse_call(to_string(problem), fault);
    check_memory(device, to_string(problem), spec.name, buffers[i]);
  }
  check_contents(device, problem, specs, buffers, stream);
}

void check_count(const Problem& problem, std::size_t takes, std::size_t passed) {
  if (takes != passed) refuse_call(to_string(problem), fmt::format("takes {} buffers, {} were passed", takes, passed));
}

}  // namespace hone
