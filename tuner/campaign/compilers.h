// Compilers: processes that compile for a worker. In one process NVRTC keeps about four cores busy, however many
// threads call it (CUDA 13.0, 16 cores of an H200's host, 2026-11-22: 32 units take 0.9 s with 4 threads as with 16,
// and 0.4 s in 16 processes).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hone/device.h>
#include <hone/kernel.h>

#include "tuner/campaign/worker_process.h"

namespace hone::tuner {

/// The subcommand, unknown to people, that makes the hone command a compiler.
inline constexpr std::string_view kCompilerCommand = "compiler-of-hone-tune";

/// Compiles by a GpuCompiler what CompileRequests on standard input ask for, and answers on standard output.
[[noreturn]] void run_compiler();

/// Processes of run_compiler(), started as they are needed. Thread-safe: as many units as there are processes compile
/// at the same time, others wait. The destructor ends them.
class Compilers {
 public:
  /// `command` is a program and its arguments.
  Compilers(std::vector<std::string> command, std::size_t most) : command_(std::move(command)), most_(most) {}

  /// As GpuCompiler::compile(). A process that dies is replaced and the unit tried once more; then it is
  /// compile_failed. Throws CommandError where no process can be started.
  Binary compile(const Unit& unit, std::string_view architecture);

 private:
  struct Compiler {
    WorkerProcess process;
    std::vector<SourceFile> headers;  ///< that it was sent last
  };

  /// A process that compiles for one thread; it is given back if it is alive.
  class Lease;

  const std::vector<std::string> command_;
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Compiler>> idle_;
  std::size_t running_ = 0;  ///< idle ones included
};

/// The device, compiling in processes of `command` where that is faster: for CUDA, where `cores`, the worker's share of
/// the machine, are more than NVRTC keeps busy. Otherwise, and without a command, it is the device itself.
std::shared_ptr<Device> compiling_elsewhere(std::shared_ptr<Device> device, const std::vector<std::string>& command,
                                            unsigned cores);

}  // namespace hone::tuner
