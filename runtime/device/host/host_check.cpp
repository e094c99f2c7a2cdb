#include <hone/host_check.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include <hone/error.h>

#include "runtime/device/host/fiber_annotations.h"
#include "runtime/device/host/guarded_memory.h"
#include "runtime/device/host/host_device.h"
#include "runtime/jit/source_line.h"

namespace hone {
namespace {

std::string spell(const CheckBuffer& buffer) {
  return fmt::format("buffer \"{}\" of {} bytes", buffer.name, buffer.initial.size());
}

using Contents = std::vector<std::vector<std::byte>>;

/// What is checked, compiled.
struct Compiled {
  const HostCheck& check;
  const Binary& binary;
  const Module& module;
};

/// One run with its buffers in guarded memory.
class Run {
 public:
  Run(const Compiled& compiled, const HostOptions& options, GuardedMemory::Place place)
      : compiled_(compiled), options_(options) {
    for (const CheckBuffer& buffer : compiled.check.buffers) {
      pointers_.push_back(memory_.emplace_back(buffer.initial.size(), memory_.size(), place).data());
      std::copy(buffer.initial.begin(), buffer.initial.end(), memory_.back().data());
    }
    options_.sm_count = sanitizer::kThread ? 0 : 1;
    options_.describe_code = [&code = compiled.binary.code](std::uint64_t address) {
      return source_line(code, address);
    };
    options_.describe_address = [this](std::uintptr_t address) {
      for (std::size_t i = 0; i < memory_.size(); ++i) {
        const std::string found = memory_[i].place_of(address);
        if (found.empty()) continue;
        has_left_buffer_ = true;
        return "\n  " + spell(compiled_.check.buffers[i]) + ": " + found;
      }
      return std::string();
    };
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void run() { compiled_.check.run(HostRun(*make_host_device(options_), compiled_.module, pointers_)); }

  /// Whether the kernel was stopped when it accessed memory near a buffer.
  bool has_left_buffer() const { return has_left_buffer_; }

  /// What was written around the buffers; "" when nothing was.
  std::string overwritten() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (const std::string place = memory_[i].overwritten(); !place.empty())
        return fmt::format("{} was written {}\n  compare indices with the sizes of the buffers; under "
                           "AddressSanitizer the report has the source line", spell(compiled_.check.buffers[i]), place);
    }
    return "";
  }

  Contents contents() const {
    Contents contents;
    for (const GuardedMemory& memory : memory_)
      contents.emplace_back(memory.data(), memory.data() + memory.size());
    return contents;
  }

 private:
  const Compiled& compiled_;
  HostOptions options_;
  std::vector<GuardedMemory> memory_;
  std::vector<void*> pointers_;
  bool has_left_buffer_ = false;
};

/// The contents of all buffers after one run.
Contents run_once(const Compiled& compiled, const HostOptions& options) {
  Run run(compiled, options, GuardedMemory::Place::near_end);
  run.run();
  if (const std::string place = run.overwritten(); !place.empty()) throw Error(ErrorCode::device_failed, place);
  return run.contents();
}

/// Runs with each buffer right at an inaccessible page: the report of an access beyond one, "" when there is none. What
/// else goes wrong may come from buffers that are aligned to less than on a GPU, and is left to the other runs.
std::string left_buffer(const Compiled& compiled, const HostOptions& options) {
  if (HONE_ASAN || HONE_TSAN) return "";  // which see that themselves
  for (const auto place : {GuardedMemory::Place::at_end, GuardedMemory::Place::at_begin}) {
    Run run(compiled, options, place);
    try {
      run.run();
    } catch (const Error& error) {
      if (run.has_left_buffer()) return error.what();
    }
  }
  return "";
}

/// The first difference between two runs in buffers that are compared; "" when there is none.
std::string difference(const HostCheck& check, const Contents& first, const Contents& other) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!check.buffers[i].compared) continue;
    const auto [at, there] = std::mismatch(first[i].begin(), first[i].end(), other[i].begin());
    if (at != first[i].end())
      return fmt::format("buffer \"{}\" differs from byte {} on", check.buffers[i].name, at - first[i].begin());
  }
  return "";
}

/// Once more with other contents of shared memory: what is wrong if that makes a difference.
std::string uninitialised(const Compiled& compiled, const Contents& results) {
  constexpr unsigned char kOtherFill = 0x4b;  // 14.6 as a half, 13323083 as a float, 3e54 as a double
  const HostCheck& check = compiled.check;
  const HostOrder& order = check.orders.front();
  try {
    const HostOptions options{.compiler = {}, .order = order, .smem_fill = kOtherFill};
    const std::string differs = difference(check, results, run_once(compiled, options));
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
  HostOptions options = usual_host_options();
  options.has_line_numbers = true;
  const std::shared_ptr<Device> device = make_host_device(options);
  const Binary binary = device->compile(check.unit);
  const std::unique_ptr<Module> module = device->load(binary, check.unit.entries);
  const Compiled compiled{check, binary, *module};
  HostCheckReport report;
  for (const HostOrder& order : check.orders) {
    const bool is_first = &order == &check.orders.front();
    report.failed_order = order;
    options.order = order;
    try {
      Run run(compiled, options, GuardedMemory::Place::near_end);
      run.run();
      // The run that is stopped where it leaves a buffer says more than what it leaves behind.
      if (is_first) report.failure = left_buffer(compiled, options);
      if (report.failure.empty()) report.failure = run.overwritten();
      if (!report.failure.empty()) throw Error(ErrorCode::device_failed, report.failure);
      if (is_first) {
        report.buffers = run.contents();
        continue;
      }
      report.failure = difference(check, report.buffers, run.contents());
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
  report.failure = uninitialised(compiled, report.buffers);
  return report;
}

}  // namespace hone
