// CommandLine: the options of a benchmark program, each with the variable that it is read into.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hone::benchmarks {

/// CLI11 behind an interface without templates, so that it is compiled once. Variables hold their defaults, and must
/// outlive parse(). Not thread-safe.
class CommandLine {
 public:
  using Words = std::vector<std::string>;

  CommandLine();
  ~CommandLine();

  /// Sets the text of --help that says what the program does.
  void describe(const std::string& text);

  /// Text; one of `choices` where there are any.
  void add(const std::string& name, std::string& value, const std::string& help, const Words& choices = {});

  /// Words with commas in between, each one of `choices` where there are any.
  void add(const std::string& name, Words& values, const std::string& help, const Words& choices = {});

  /// A positive number.
  void add(const std::string& name, int& value, const std::string& help);
  void add(const std::string& name, std::int64_t& value, const std::string& help);
  void add(const std::string& name, double& value, const std::string& help);

  /// A number from `least` to `most`.
  void add(const std::string& name, int& value, const std::string& help, int least, int most);
  void add(const std::string& name, std::int64_t& value, const std::string& help, std::int64_t least,
           std::int64_t most);

  /// Sets `value` to true; one whose name begins with ! sets it to false.
  void add_flag(const std::string& name, bool& value, const std::string& help);

  /// The option `name` must be given.
  void require(const std::string& name);

  /// Reads the arguments of main(). The exit code where the program is to end: after --help, or, with a message on
  /// stderr, where they are wrong.
  std::optional<int> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace hone::benchmarks
