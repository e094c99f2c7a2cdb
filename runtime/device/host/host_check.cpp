#include <hone/host_check.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <new>
#include <span>

#include <hone/error.h>

#include "runtime/device/host/fiber_annotations.h"
#include "runtime/device/host/access_trace.h"
#include "runtime/device/host/guarded_memory.h"
#include "runtime/device/host/host_device.h"
#include "runtime/device/host/race_report.h"
#include "runtime/jit/source_line.h"

namespace hone {
namespace {

using Contents = std::vector<std::vector<std::byte>>;

/// A check with its compiled unit.
struct Compiled {
  const HostCheck& check;
  const Binary& binary;
  const Module& module;
};

/// A thread or a block that the deadline stopped.
class RanTooLong : public Error {
 public:
  using Error::Error;
};

bool is_overdue(const Error& error) { return dynamic_cast<const RanTooLong*>(&error) != nullptr; }

/// What buffers hold before a run.
using InitialOf = std::span<const std::byte> (*)(const HostCheck& check, std::size_t buffer);

std::span<const std::byte> usual_initial(const HostCheck& check, std::size_t buffer) {
  return check.buffers[buffer].initial;
}

std::span<const std::byte> other_initial(const HostCheck& check, std::size_t buffer) {
  return check.other_initial.at(buffer);
}

/// In the forward order copies land at once; with each other order they land at other times.
HostCopies copies_of(const HostOrder& order) {
  if (order.kind == HostOrder::Kind::forward) return {HostCopies::Kind::at_once};
  return {HostCopies::Kind::late, order.seed};
}

/// One run with its buffers in guarded memory, which HostCheck::large has of its own.
class Run {
 public:
  Run(const Compiled& compiled, const HostOptions& options, GuardedMemory::Place place,
      const HostLargeRun* large = nullptr, InitialOf initial_of = usual_initial)
      : compiled_(compiled), options_(options), make_(large ? large->run : compiled.check.run) {
    for (std::size_t i = 0; i < compiled.check.buffers.size(); ++i) {
      const std::span<const std::byte> initial = initial_of(compiled.check, i);
      pointers_.push_back(memory_.emplace_back(large ? large->buffer_bytes.at(i) : initial.size(), i, place).data());
      if (!large) std::copy(initial.begin(), initial.end(), memory_.back().data());
    }
    options_.sm_count = sanitizer::kThread ? 0 : 1;
    options_.counts_waiting = true;
    if (!large) options_.block_deadline = compiled.check.deadline;
    options_.describe_code = [&code = compiled.binary.code](std::uint64_t address) {
      return source_lines(code, {address}).front();
    };
    options_.describe_address = [this](std::uintptr_t address) {
      const std::string found = place_of(address);
      if (found.empty()) return found;
      has_left_buffer_ = true;
      return "\n  " + found;
    };
    options_.on_failure = [this](const BlockFailure& failure) {
      using enum BlockFailure::Kind;
      has_divided_by_zero_ = failure.kind == arithmetic_fault;
      ran_too_long_ = failure.kind == deadline || failure.kind == endless_lane || failure.kind == endless_block;
    };
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void run() try {
    make_(HostRun(*make_host_device(options_), compiled_.module, pointers_));
  } catch (const Error& error) {
    if (!ran_too_long_) throw;
    throw RanTooLong(error.code(),
                     fmt::format("{}\n  a check stops a thread after {} ms, and a block after ten times that: "
                                 "HostCheck::deadline or hone check --deadline changes it",
                                 error.what(), options_.block_deadline.count()));
  }

  /// True if the kernel was stopped when it accessed memory near a buffer.
  bool has_left_buffer() const { return has_left_buffer_; }

  /// True if it was stopped when it divided an integer by zero.
  bool has_divided_by_zero() const { return has_divided_by_zero_; }

  /// "buffer "y" of 4000 bytes: at byte 12", for an address in or near one; "" for all others.
  std::string place_of(std::uintptr_t address) const {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (const std::string found = memory_[i].place_of(address); !found.empty())
        return fmt::format("{}: {}", spell(i), found);
    return "";
  }

  /// Says what was written around the buffers; "" when nothing was.
  std::string overwritten() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (const std::string place = memory_[i].overwritten(); !place.empty())
        return fmt::format("{} was written {}\n  compare indices with the sizes of the buffers; under "
                           "AddressSanitizer the report has the source line", spell(i), place);
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
  std::string spell(std::size_t buffer) const {
    return fmt::format("buffer \"{}\" of {} bytes", compiled_.check.buffers[buffer].name, memory_[buffer].size());
  }

  const Compiled& compiled_;
  HostOptions options_;
  const std::function<void(const HostRun&)>& make_;
  std::vector<GuardedMemory> memory_;
  std::vector<void*> pointers_;
  bool has_left_buffer_ = false, has_divided_by_zero_ = false, ran_too_long_ = false;
};

/// The contents of all buffers after one run.
Contents run_once(const Compiled& compiled, const HostOptions& options, InitialOf initial_of = usual_initial) {
  Run run(compiled, options, GuardedMemory::Place::near_end, nullptr, initial_of);
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

/// True if a run that differs from another one does not if its copies land at once.
bool depends_on_copies(const Compiled& compiled, HostOptions options, const Contents& other) {
  if (HONE_ASAN || HONE_TSAN || options.copies.kind == HostCopies::Kind::at_once) return false;
  options.copies = {HostCopies::Kind::at_once};
  return difference(compiled.check, other, run_once(compiled, options)).empty();
}

/// Once more with other contents of shared memory: what is wrong if that makes a difference.
std::string uninitialised(const Compiled& compiled, HostCheckReport& report) {
  constexpr unsigned char kOtherFill = 0x4b;  // 14.6 as a half, 13323083 as a float, 3e54 as a double
  const HostCheck& check = compiled.check;
  const HostOrder& order = check.orders.front();
  try {
    const HostOptions options{
        .compiler = {}, .order = order, .copies = copies_of(order), .smem_fill = kOtherFill};
    const std::string differs = difference(check, report.buffers, run_once(compiled, options));
    if (differs.empty()) return "";
    return fmt::format("the result of \"{}\" depends on what shared memory holds before the kernel sets it: {}\n"
                       "  set all that is read: a GPU leaves there what the last block did",
                       check.unit.name, differs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_failed) throw;
    report.ran_too_long = is_overdue(error);
    return fmt::format("with threads in the order {}, and other contents of shared memory before it is set: {}",
                       to_string(order), error.what());
  }
}

/// Once more from HostCheck::other_initial: what ended that run.
std::string fault_from_other_contents(const Compiled& compiled, HostCheckReport& report) {
  const HostCheck& check = compiled.check;
  if (check.other_initial.empty()) return "";
  try {
    const HostOrder& order = check.orders.front();
    report.other_buffers =
        run_once(compiled, {.compiler = {}, .order = order, .copies = copies_of(order)}, other_initial);
    return "";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device_failed) throw;
    report.ran_too_long = is_overdue(error);
    return fmt::format("with threads in the order {}, and other contents of the buffers that the kernel writes: {}",
                       to_string(check.orders.front()), error.what());
  }
}

/// Races among the accesses of a traced run. Lines that each follow a line break; "" when there is none.
std::string traced_races(const HostCheck& check, const std::vector<Race>& (AccessTrace::*races)() const) {
  AccessTrace trace;
  HostOptions options = usual_host_options();
  options.instrumentation = HostInstrumentation::traced;
  options.trace = &trace;
  options.order = check.orders.front();
  const std::shared_ptr<Device> device = make_host_device(options);
  const Binary binary = device->compile(check.unit);
  const std::unique_ptr<Module> module = device->load(binary, check.unit.entries);
  const Compiled compiled{check, binary, *module};
  Run run(compiled, options, GuardedMemory::Place::near_end);
  run.run();
  return describe_races((trace.*races)(), binary.code, [&run](std::uintptr_t address) {
    const std::string place = run.place_of(address);
    return place.empty() ? "memory that is no buffer" : place;
  });
}

/// The accesses that results depend on the order of.
std::string racing_accesses(const HostCheck& check) {
  if (HONE_TSAN) return "\n  there is a race: the reports of ThreadSanitizer have the lines";
  std::string races;
  try {
    races = traced_races(check, &AccessTrace::races);
  } catch (const Error& error) {
    return fmt::format("\n  there is a race: look for a missing barrier or fence (its lines are not known: {})",
                       error.what());
  }
  if (!races.empty()) return races;
  return "\n  no two accesses were found that nothing orders: the order of atomic functions decides, or a fence is "
         "missing; do not compare what float atomics add up, since they round in their order";
}

/// The changes that threads may undo for each other, though results are the same in every order here.
std::string lost_updates(const HostCheck& check, HostCheckReport& report) {
  if (HONE_TSAN) return "";
  try {
    const std::string races = traced_races(check, &AccessTrace::lost_updates);
    if (races.empty()) return "";
    return fmt::format("threads change one place without an atomic function or a barrier, so that a GPU may lose one "
                       "of the changes of \"{}\"{}",
                       check.unit.name, races);
  } catch (const Error& error) {  // traced code needs more stack and more time
    report.not_traced = error.what();
    return "";
  }
}

/// Runs HostCheck::large: the report of what ended it, "" when nothing did.
std::string large_fault(const Compiled& compiled, HostCheckReport& report) {
  if (!compiled.check.large) return "";
  const HostLargeRun& large = *compiled.check.large;
  if (HONE_ASAN || HONE_TSAN) {
    report.large_not_run = "sanitizers take memory for all of a buffer";
    return "";
  }
  HostOptions options = usual_host_options();
  options.order = compiled.check.orders.front();
  options.copies = copies_of(options.order);
  options.corner_blocks_only = true;
  // A thread that walks through all of a buffer shows nothing more.
  options.block_deadline = std::chrono::seconds(2);
  std::string fault;
  try {
    Run run(compiled, options, GuardedMemory::Place::near_end, &large);
    try {
      run.run();
      fault = run.overwritten();
    } catch (const Error& error) {
      if (is_overdue(error)) return "";
      // A division may be the fault of its buffers, which hold zeros.
      if (error.code() != ErrorCode::device_failed || run.has_divided_by_zero())
        report.large_not_run = fmt::format("it was not finished: {}", error.what());
      else
        fault = error.what();
    }
  } catch (const std::bad_alloc&) {
    report.large_not_run = "there are no addresses for its buffers";
  }
  return fault.empty() ? "" : fmt::format("with {} and zeros in all arrays: {}", large.label, fault);
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
  options.instrumentation = HostInstrumentation::checked;
  const std::shared_ptr<Device> device = make_host_device(options);
  const Binary binary = device->compile(check.unit);
  const std::unique_ptr<Module> module = device->load(binary, check.unit.entries);
  const Compiled compiled{check, binary, *module};
  HostCheckReport report;
  for (const HostOrder& order : check.orders) {
    const bool is_first = &order == &check.orders.front();
    report.failed_order = order;
    options.order = order;
    options.copies = copies_of(order);
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
      if (depends_on_copies(compiled, options, report.buffers)) {
        report.failure = fmt::format(
            "the result of \"{}\" depends on when asynchronous copies land: in the order {}, with late ones, {}\n"
            "  let each thread that reads what a copy brings wait for it first, and start a copy only after all reads "
            "of what it overwrites",
            check.unit.name, to_string(order), report.failure);
        return report;
      }
      report.failure = fmt::format(
          "the result of \"{}\" depends on the order in which threads and blocks run: in the orders {} and {} {}{}",
          check.unit.name, to_string(check.orders.front()), to_string(order), report.failure, racing_accesses(check));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::device_failed) throw;
      report.ran_too_long = is_overdue(error);
      report.failure = fmt::format("with threads in the order {}: {}", to_string(order), error.what());
    }
    return report;
  }
  report.failed_order = {};
  report.failure = uninitialised(compiled, report);
  if (report.failure.empty()) report.failure = fault_from_other_contents(compiled, report);
  if (report.failure.empty() && check.looks_for_lost_updates) report.failure = lost_updates(check, report);
  if (report.failure.empty()) report.failure = large_fault(compiled, report);
  return report;
}

}  // namespace hone
