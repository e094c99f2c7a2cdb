#include "benchmarks/common/command_line.h"

#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace hone::benchmarks {
namespace {

void allow(CLI::Option& option, const CommandLine::Words& choices) {
  if (!choices.empty()) option.check(CLI::IsMember(choices));
}

void require_positive(CLI::Option& option) {
  option.check([](const std::string& text) {
    const bool is_positive = std::strtod(text.c_str(), nullptr) > 0;
    return is_positive ? std::string() : fmt::format("'{}' is no positive number", text);
  });
}

}  // namespace

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>()) {}
CommandLine::~CommandLine() = default;

void CommandLine::describe(const std::string& text) { app_->description(text); }

void CommandLine::add(const std::string& name, std::string& value, const std::string& help, const Words& choices) {
  allow(*app_->add_option(name, value, help), choices);
}

void CommandLine::add(const std::string& name, Words& values, const std::string& help, const Words& choices) {
  allow(*app_->add_option(name, values, help)->delimiter(','), choices);
}

void CommandLine::add(const std::string& name, int& value, const std::string& help) {
  require_positive(*app_->add_option(name, value, help));
}

void CommandLine::add(const std::string& name, std::int64_t& value, const std::string& help) {
  require_positive(*app_->add_option(name, value, help));
}

void CommandLine::add(const std::string& name, double& value, const std::string& help) {
  require_positive(*app_->add_option(name, value, help));
}

void CommandLine::add(const std::string& name, int& value, const std::string& help, int least, int most) {
  app_->add_option(name, value, help)->check(CLI::Range(least, most));
}

void CommandLine::add(const std::string& name, std::int64_t& value, const std::string& help, std::int64_t least,
                      std::int64_t most) {
  app_->add_option(name, value, help)->check(CLI::Range(least, most));
}

void CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}

void CommandLine::require(const std::string& name) { app_->get_option(name)->required(); }

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error);
  }
}

}  // namespace hone::benchmarks
