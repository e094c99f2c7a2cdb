// hone reduce, hone softmax and hone transpose share this: they call a kernel on the array in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hone/session.h>

#include "tuner/array/input_file.h"
#include "tuner/array/output_file.h"
#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed.
struct ArrayOptions {
  std::string file;
  std::string dtype;
  std::string shape;
  std::string axis;
  std::string output;
  std::string device = "auto";
  std::string cache;
  std::string on_miss;
  std::string budget;
  bool time = false;
  bool json = false;
};

/// One call on the array, and what it makes of it.
struct ArrayCall {
  std::string name;                      ///< "softmax", "sum"
  Problem problem;                       ///< what `launch` asks the session
  DType dtype = DType::f32;              ///< of the result
  std::vector<std::int64_t> shape = {};  ///< likewise
  std::function<Choice(Session& session, const void* in, void* out, Stream stream)> launch = {};
};

/// FILE, --dtype, --shape, --output and what all commands have that call a kernel; --axis where there is one.
void add_array_options(CLI::App& command, ArrayOptions& options, bool has_axis);

/// Returns what --cache, --on-miss and --budget make of the environment's options. The session warns of failures of
/// cache files on the error stream of `context`, which must outlive it. Throws CommandError(usage).
SessionOptions session_options(const ArrayOptions& options, const Context& context);

/// The array in the file, with the shape that --shape gives raw elements; in C order. Throws CommandError(usage), and
/// Error as open_input().
InputFile open_array(const ArrayOptions& options);

/// The file of --output, for one result of `input`; null where none is named. Throws CommandError(usage) if there are
/// several, and what OutputFile throws.
std::unique_ptr<OutputFile> open_output(const ArrayOptions& options, const InputFile& input,
                                        std::span<const DType> results, const Context& context);

/// Where the report goes: to the error stream where --output takes the standard output.
Context report_context(const ArrayOptions& options, const Context& context);

/// Makes the calls one after the other, writes what the only one makes where --output says, and reports how fast they
/// were. Throws Error and CommandError.
ExitCode run_on_array(const InputFile& input, const std::vector<ArrayCall>& calls, const ArrayOptions& options,
                      const Context& context);

}  // namespace hone::tuner
