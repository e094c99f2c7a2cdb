#include "tuner/campaign/compilers.h"

#include <fmt/core.h>
#include <poll.h>

#include <hone/error.h>
#include <hone/sdk/forwarding_device.h>
#include <hone/sdk/gpu_compiler.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tuner/campaign/standard_streams.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

/// For the thread that measures, and what else goes on.
constexpr unsigned kSpareCores = 2;

/// Each has the compiler's code and its built-in headers in memory, about 100 MB.
constexpr unsigned kMostCompilers = 16;

constexpr int kTries = 2;

bool are_alike(const std::vector<SourceFile>& a, const std::vector<SourceFile>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SourceFile& one, const SourceFile& other) {
    return one.name == other.name && one.text == other.text;
  });
}

/// Returns what a compiler answers; nullopt when it ended instead, then `how_it_ended` says how.
std::optional<Answer> answer_of(WorkerProcess& process, std::string& how_it_ended) {
  while (true) {
    std::vector<Answer> answers = process.receive();
    if (!answers.empty()) return std::move(answers.front());
    if (process.has_ended()) {
      how_it_ended = process.how_it_ended();
      return std::nullopt;
    }
    pollfd waiting{.fd = process.descriptor(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, -1);
  }
}

Binary binary_of(Answer&& answer) {
  if (auto* compiled = std::get_if<CompiledAnswer>(&answer)) return std::move(compiled->binary);
  if (const auto* failed = std::get_if<CompileFailedAnswer>(&answer)) throw Error(failed->code, failed->message);
  throw Error(ErrorCode::compile_failed, "a compiler's answer is none of its own");
}

class DeviceWithCompilers final : public ForwardingDevice {
 public:
  DeviceWithCompilers(std::shared_ptr<Device> inner, const std::vector<std::string>& command, std::size_t most)
      : ForwardingDevice(std::move(inner)), most_(most), compilers_(command, most) {}

  Binary compile(const Unit& unit) const override {
    try {
      return compilers_.compile(unit, facts().architecture);
    } catch (const CommandError&) {
      return ForwardingDevice::compile(unit);  // no further process can be started
    }
  }
  std::size_t parallel_compilations() const override { return most_; }

 private:
  std::size_t most_;
  mutable Compilers compilers_;
};

}  // namespace

void run_compiler() {
  auto& requests = *new RequestStream;  // lives as long as the process
  const GpuCompiler compiler;
  std::vector<SourceFile> headers;
  while (true) {
    auto request = std::get<CompileRequest>(requests.next());
    if (request.headers) headers = *std::move(request.headers);
    const Unit unit{.name = request.name,
                    .source = request.source,
                    .headers = headers,
                    .entries = request.entries,
                    .include_folders = request.include_folders};
    try {
      answer(CompiledAnswer{compiler.compile(unit, request.architecture)});
    } catch (const Error& error) {
      answer(CompileFailedAnswer{error.code(), error.what()});
    }
  }
}

class Compilers::Lease {
 public:
  explicit Lease(Compilers& compilers) : compilers_(compilers) {
    std::unique_lock lock(compilers_.mutex_);
    compilers_.changed_.wait(lock,
                             [&] { return !compilers_.idle_.empty() || compilers_.running_ < compilers_.most_; });
    if (!compilers_.idle_.empty()) {
      compiler_ = std::move(compilers_.idle_.back());
      compilers_.idle_.pop_back();
      return;
    }
    ++compilers_.running_;
    try {
      compiler_ = std::make_unique<Compiler>(WorkerProcess(compilers_.command_));
    } catch (...) {
      --compilers_.running_;
      compilers_.changed_.notify_one();  // whoever waits tries itself
      throw;
    }
  }

  ~Lease() {
    if (!is_alive_) compiler_.reset();
    const std::scoped_lock lock(compilers_.mutex_);
    if (compiler_) compilers_.idle_.push_back(std::move(compiler_));
    else --compilers_.running_;
    compilers_.changed_.notify_one();
  }

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// As answer_of().
  std::optional<Answer> ask(const Unit& unit, std::string_view architecture, std::string& how_it_ended) {
    CompileRequest request{std::string(architecture), unit.name,            unit.source,
                           unit.entries,              unit.include_folders, std::nullopt};
    if (!are_alike(compiler_->headers, unit.headers)) request.headers = unit.headers;
    compiler_->process.send(std::move(request));
    compiler_->headers = unit.headers;
    std::optional<Answer> answer = answer_of(compiler_->process, how_it_ended);
    is_alive_ = answer.has_value();
    return answer;
  }

 private:
  Compilers& compilers_;
  std::unique_ptr<Compiler> compiler_;
  bool is_alive_ = false;
};

Binary Compilers::compile(const Unit& unit, std::string_view architecture) {
  std::string how_it_ended;
  for (int tried = 0; tried < kTries; ++tried) {
    std::optional<Answer> answer = Lease(*this).ask(unit, architecture, how_it_ended);
    if (answer) return binary_of(*std::move(answer));
  }
  throw Error(ErrorCode::compile_failed, fmt::format("the process that compiled \"{}\" {}", unit.name, how_it_ended));
}

std::shared_ptr<Device> compiling_elsewhere(std::shared_ptr<Device> device, const std::vector<std::string>& command,
                                            unsigned cores) {
  if (command.empty() || device->facts().kind != "cuda" || cores <= device->parallel_compilations() + kSpareCores)
    return device;
  return std::make_shared<DeviceWithCompilers>(std::move(device), command,
                                               std::min(cores - kSpareCores, kMostCompilers));
}

}  // namespace hone::tuner
