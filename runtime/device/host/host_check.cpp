#include <hone/host_check.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include <hone/error.h>

#include "runtime/device/host/fiber_annotations.h"
#include "runtime/device/host/guarded_memory.h"
#include "runtime/device/host/host_device.h"

namespace hone {
namespace {

std::string spell(const CheckBuffer& buffer) {
  return fmt::format("buffer \"{}\" of {} bytes", buffer.name, buffer.initial.size());
}

/// The contents of all buffers after one run.
std::vector<std::vector<std::byte>> run_once(const HostCheck& check, const HostOptions& with, const Module& module) {
  HostOptions options = with;
  options.sm_count = sanitizer::kThread ? 0 : 1;
  std::vector<GuardedMemory> memory;
  std::vector<void*> pointers;
  for (const CheckBuffer& buffer : check.buffers) {
    pointers.push_back(memory.emplace_back(buffer.initial.size(), memory.size()).data());
    std::copy(buffer.initial.begin(), buffer.initial.end(), memory.back().data());
  }
  options.describe_address = [&](std::uintptr_t address) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::string place = memory[i].place_of(address);
      if (!place.empty()) return "\n  " + spell(check.buffers[i]) + ": " + place;
    }
    return std::string();
  };
  const std::shared_ptr<Device> device = make_host_device(options);
  check.run(HostRun(*device, module, pointers));
  std::vector<std::vector<std::byte>> results;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (const std::string place = memory[i].overwritten(); !place.empty()) {
      throw Error(ErrorCode::device_failed,
                  fmt::format("{} was written {}\n  compare indices with the sizes of the buffers; under "
                              "AddressSanitizer the report has the source line", spell(check.buffers[i]), place));
    }
    results.emplace_back(memory[i].data(), memory[i].data() + memory[i].size());
  }
  return results;
}

/// The first difference between two runs in buffers that are compared; "" when there is none.
std::string difference(const HostCheck& check, const std::vector<std::vector<std::byte>>& first,
                       const std::vector<std::vector<std::byte>>& other) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!check.buffers[i].compared) continue;
    const auto [at, there] = std::mismatch(first[i].begin(), first[i].end(), other[i].begin());
    if (at != first[i].end())
      return fmt::format("buffer \"{}\" differs from byte {} on", check.buffers[i].name, at - first[i].begin());
  }
  return "";
}

/// Once more with other contents of shared memory: what is wrong if that makes a difference.
std::string uninitialised(const HostCheck& check, const std::vector<std::vector<std::byte>>& results,
                          const Module& module) {
  constexpr unsigned char kOtherFill = 0x4b;  // 14.6 as a half, 13323083 as a float, 3e54 as a double
  const HostOrder& order = check.orders.front();
  try {
    const HostOptions options{.compiler = {}, .order = order, .smem_fill = kOtherFill};
    const std::string differs = difference(check, results, run_once(check, options, module));
    if (differs.empty()) return "";
    return fmt::format("the result of \"{}\" depends on what shared memory holds before the kernel sets it: {}\n"
                       "  set all that is read: a GPU leaves there what the last block did",
                       check.unit.name, differs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_failed) throw;
    return fmt::format("{}\n  with threads in the order {}, and other contents of shared memory before it is set",
                       error.what(), to_string(order));
  }
}

}  // namespace

std::string to_string(const HostOrder& order) {
  switch (order.kind) {
    case HostOrder::Kind::forward: return "forward";
    case HostOrder::Kind::reverse: return "reverse";
    case HostOrder::Kind::random: break;
  }
  return fmt::format("random:{}", order.seed);
}

HostOrder parse_host_order(std::string_view text) {
  constexpr std::string_view kRandom = "random:";
  if (text == "forward") return {};
  if (text == "reverse") return {HostOrder::Kind::reverse, 0};
  HostOrder order{HostOrder::Kind::random, 0};
  if (text.starts_with(kRandom)) {
    const char* const end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data() + kRandom.size(), end, order.seed);
    if (failure == std::errc() && rest == end) return order;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is no order of threads; there are: forward, reverse, random:SEED", text));
}

std::vector<HostOrder> default_host_orders() {
  using Kind = HostOrder::Kind;
  return {{Kind::forward, 0}, {Kind::reverse, 0}, {Kind::random, 1}, {Kind::random, 2}, {Kind::random, 3}};
}

HostCheckReport check_on_host(const HostCheck& check) {
  if (check.orders.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("checking \"{}\": HostCheck::orders is empty, so nothing would run", check.unit.name));
  }
  const std::shared_ptr<Device> device = make_host_device();
  const std::unique_ptr<Module> module = device->load(device->compile(check.unit), check.unit.entries);
  HostCheckReport report;
  for (const HostOrder& order : check.orders) {
    report.failed_order = order;
    try {
      auto results = run_once(check, {.compiler = {}, .order = order}, *module);
      if (&order == &check.orders.front()) {
        report.buffers = std::move(results);
        continue;
      }
      report.failure = difference(check, report.buffers, results);
      if (report.failure.empty()) continue;
      report.failure = fmt::format(
          "the result of \"{}\" depends on the order in which threads and blocks run: in the orders {} and {} {}\n"
          "  there is a race: look for a missing barrier or fence, or build with ThreadSanitizer to see the lines",
          check.unit.name, to_string(check.orders.front()), to_string(order), report.failure);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::device_failed) throw;
      report.failure = fmt::format("{}\n  with threads in the order {}", error.what(), to_string(order));
    }
    return report;
  }
  report.failed_order = {};
  report.failure = uninitialised(check, report.buffers, *module);
  return report;
}

}  // namespace hone
