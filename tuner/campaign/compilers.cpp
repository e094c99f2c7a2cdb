#include "tuner/campaign/compilers.h"

#include <fmt/core.h>
#include <poll.h>

#include <hone/error.h>
#include <hone/sdk/forwarding_device.h>
#include <hone/sdk/gpu_compiler.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "tuner/base64.h"
#include "tuner/campaign/orders.h"
#include "tuner/command_error.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;

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

Json to_json(const std::vector<SourceFile>& headers) {
  Json list = Json::array();
  for (const SourceFile& header : headers) list.push_back({header.name, header.text});
  return list;
}

std::vector<SourceFile> headers_from_json(const Json& list) {
  std::vector<SourceFile> headers;
  for (const Json& header : list) headers.push_back({header.at(0), header.at(1)});
  return headers;
}

/// What a compiler answers, or what its end is called.
Json answer_of(WorkerProcess& process, std::string& how_it_ended) {
  while (true) {
    const std::vector<Json> answers = process.receive();
    if (!answers.empty()) return answers.front();
    if (process.has_ended()) {
      how_it_ended = process.how_it_ended();
      return {};
    }
    pollfd waiting{.fd = process.descriptor(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, -1);
  }
}

Binary binary_from_json(const Json& answer) {
  if (answer.contains("failed")) {
    const Json& failure = answer["failed"];
    throw Error(static_cast<ErrorCode>(failure.at("code").get<int>()), failure.at("message"));
  }
  const Json& compiled = answer.at("compiled");
  std::optional<std::vector<std::byte>> code = from_base64(compiled.at("code").get<std::string>());
  if (!code) throw Error(ErrorCode::compile_failed, "a compiler's answer is no base64");
  return {.format = compiled.at("format"),
          .architecture = compiled.at("architecture"),
          .code = std::move(*code),
          .entries = compiled.at("entries")};
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
  auto& orders = *new Orders;  // lives as long as the process
  const GpuCompiler compiler;
  std::vector<SourceFile> headers;
  while (true) {
    const Json order = orders.next().at("compile");
    if (order.contains("headers")) headers = headers_from_json(order["headers"]);
    const Unit unit{.name = order.at("name"),
                    .source = order.at("source"),
                    .headers = headers,
                    .entries = order.at("entries")};
    try {
      const Binary binary = compiler.compile(unit, order.at("architecture").get<std::string>());
      answer("compiled", {{"format", binary.format},
                          {"architecture", binary.architecture},
                          {"code", base64(binary.code)},
                          {"entries", binary.entries}});
    } catch (const Error& error) {
      answer("failed", {{"code", static_cast<int>(error.code())}, {"message", error.what()}});
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

  /// The answer; null when the process ended instead, then `how_it_ended` says how.
  Json ask(const Unit& unit, std::string_view architecture, std::string& how_it_ended) {
    Json order{{"architecture", architecture}, {"name", unit.name}, {"source", unit.source}, {"entries", unit.entries}};
    if (!are_alike(compiler_->headers, unit.headers)) order["headers"] = to_json(unit.headers);
    compiler_->process.send({{"compile", std::move(order)}});
    compiler_->headers = unit.headers;
    Json answer = answer_of(compiler_->process, how_it_ended);
    is_alive_ = !answer.is_null();
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
    const Json answer = Lease(*this).ask(unit, architecture, how_it_ended);
    if (!answer.is_null()) return binary_from_json(answer);
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
