#include "tuner/array/run_command.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/own_stream.h>
#include <hone/tune_arguments.h>
#include <hone/tunable_kernel.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cache/place.h"
#include "cache/store.h"
#include "tuner/array/axis.h"
#include "tuner/array/call_report.h"
#include "tuner/array/fatal_signal.h"
#include "tuner/array/npy.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/problems/problem_selection.h"
#include "tuner/problems/problem_text.h"
#include "tuner/problems/selection.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// Says how a user of the command tunes a problem without a winner: with the session's cache file, or without any if it
/// has none, or into another file if that one cannot be read or is not to be written to.
std::string how_to_tune(const Problem& problem, const SessionOptions& session, const Device& device) {
  const std::filesystem::path& cache = session.cache_path;
  const std::string command = fmt::format("hone tune {} --device {}", tune_words(problem), device.name());
  if (cache.empty())
    return "the cache is off: tune it in the call with --on-miss tune, or turn the cache on and run: " + command;
  try {
    cache::Store(cache).find({});
    cache::require_writable_place(cache);
    if (!session.cache_read_only)
      return fmt::format("tune it with: {} --cache {}", command, shell_quoted(cache.string()));
  } catch (const cache::StoreError&) {
    // The file serves nobody who tunes.
  }
  return "tune it into a cache file that can be used (HONE_CACHE, --cache): " + command;
}

using Kind = KernelArgument::Kind;

std::vector<const KernelArgument*> arguments_of(const KernelSpec& spec, std::initializer_list<Kind> kinds) {
  std::vector<const KernelArgument*> arguments;
  for (const KernelArgument& argument : spec.arguments)
    if (std::ranges::find(kinds, argument.kind) != kinds.end()) arguments.push_back(&argument);
  return arguments;
}

std::string names_of(const std::vector<const KernelArgument*>& arguments) {
  std::string names;
  for (const KernelArgument* argument : arguments) names.append(names.empty() ? "" : ", ").append(argument->name);
  return names.empty() ? "none" : names;
}

void require_count(std::size_t found, const std::vector<const KernelArgument*>& wanted, std::string_view what) {
  if (found == wanted.size()) return;
  throw CommandError(ExitCode::usage,
                     fmt::format("{} {} given, and the kernel has {}: {}",
                                 count_text(static_cast<std::int64_t>(found), what), found == 1 ? "is" : "are",
                                 wanted.size(), names_of(wanted)));
}

/// Opens the inputs in the order of the arguments.
std::vector<InputFile> open_inputs(const RunOptions& options, const std::vector<const KernelArgument*>& arguments) {
  require_count(options.files.size() - 1, arguments, "input file");
  if (std::ranges::count_if(options.files, is_standard_input) > 1)
    throw CommandError(ExitCode::usage, "the standard input (-) is given twice, and is one array; give files for the "
                                        "others");
  std::vector<InputFile> inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    inputs.push_back(open_input(options.files[i + 1], arguments[i]->dtype, arguments[i]->name));
    require_c_order(inputs.back());
  }
  return inputs;
}

/// Refuses outputs that would overwrite each other. What is neither a file nor the standard output, such as /dev/null,
/// takes all.
void require_apart(const std::vector<std::string>& outputs) {
  namespace fs = std::filesystem;
  const auto is_replaced = [](const fs::path& path) {
    std::error_code error;
    return !fs::exists(path, error) || fs::is_regular_file(path, error);
  };
  for (auto one = outputs.begin(); one != outputs.end(); ++one)
    for (auto other = outputs.begin(); other != one; ++other) {
      if (is_standard_output(*one) && is_standard_output(*other))
        throw CommandError(ExitCode::usage, "the standard output (-) is given twice, and is one array; give files for "
                                            "the others");
      std::error_code error;
      if (is_replaced(*one) && fs::weakly_canonical(*one, error) == fs::weakly_canonical(*other, error))
        throw CommandError(ExitCode::usage, fmt::format("the output '{}' is given twice, and is one array; give each "
                                                        "array a file of its own", printable(*one)));
    }
}

/// The extents of the call, x first: the shape of the first input that has as many elements as they say. The last axis
/// of an array is the first extent. Empty if there is no such input.
std::vector<std::int64_t> extents_of_inputs(const KernelSpec& spec, const std::vector<InputFile>& inputs,
                                            const std::vector<const KernelArgument*>& arguments) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!arguments[i]->elements.empty()) continue;
    if (spec.extents.size() == 1) return {inputs[i].elements};
    if (inputs[i].shape.size() == spec.extents.size()) return {inputs[i].shape.rbegin(), inputs[i].shape.rend()};
  }
  return {};
}

/// The call of the size as typed, or of the inputs.
Problem called_problem(const RunOptions& options, const KernelSpec& spec, const std::vector<InputFile>& inputs,
                       const std::vector<const KernelArgument*>& arguments) {
  const std::vector<std::int64_t> extents =
      options.size.empty() ? extents_of_inputs(spec, inputs, arguments) : std::vector<std::int64_t>();
  if (options.size.empty() && extents.empty())
    throw CommandError(ExitCode::usage,
                       fmt::format("the size of the call does not follow from the inputs; give --size, which is {}",
                                   fmt::join(spec.extents, " x ")));
  // Sizes of problems to tune are at least 1; arrays, and so calls, may have no elements.
  std::vector<std::int64_t> tuned = extents;
  for (std::int64_t& extent : tuned) extent = std::max<std::int64_t>(1, extent);
  const std::string size = extents.empty() ? options.size : fmt::format("{}", fmt::join(tuned, "x"));
  const std::vector<Problem> problems = list_problems({.family = options.files.front(), .sizes = size});
  if (problems.size() != 1)
    throw CommandError(ExitCode::usage, fmt::format("--size {} names {} sizes; a call has one", size, problems.size()));
  Problem problem = problems.front();
  std::copy(extents.begin(), extents.end(), problem.extents.begin());
  return problem;
}

void set_scalars(const RunOptions& options, const KernelSpec& spec, Problem& problem) {
  const std::vector<const KernelArgument*> scalars = arguments_of(spec, {Kind::scalar});
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const auto found = std::ranges::find_if(scalars, [&](const KernelArgument* each) { return each->name == name; });
    if (found == scalars.end() || equals == std::string::npos)
      throw CommandError(ExitCode::usage, fmt::format("--set {}: give NAME=NUMBER, where the names are {}",
                                                      printable(setting), names_of(scalars)));
    std::optional<double>& scalar = problem.scalars[static_cast<std::size_t>(found - scalars.begin())];
    if (scalar)
      throw CommandError(ExitCode::usage, fmt::format("--set {}: {} is given twice", printable(setting), name));
    scalar = parse_number(std::string_view(setting).substr(equals + 1));
    const std::string why = scalar ? problem.family->refuse(problem)
                                   : fmt::format("that is no number in the range of a double; {} is one, of {}", name,
                                                 info((*found)->dtype).name);
    if (!why.empty()) throw CommandError(ExitCode::usage, fmt::format("--set {}: {}", printable(setting), why));
  }
  for (std::size_t i = 0; i < scalars.size(); ++i)
    if (!problem.scalars[i])
      throw CommandError(ExitCode::usage, fmt::format("the number {} is missing; give --set {}=VALUE", scalars[i]->name,
                                                      scalars[i]->name));
}

/// Says which index is out of bounds; the kernel would follow it to any memory.
void check_indices(const InputFile& input, const KernelArgument& argument, std::int64_t limit) {
  std::int64_t place = 0;
  read_elements(input, [&](std::span<const std::byte> part) {
    with_element_type(input.dtype, [&]<class T>(T) {
      if constexpr (std::is_integral_v<T>) {
        for (std::size_t at = 0; at < part.size(); at += sizeof(T), ++place) {
          T index{};
          std::memcpy(&index, part.data() + at, sizeof(T));
          if (std::cmp_greater_equal(+index, 0) && std::cmp_less(+index, limit)) continue;
          throw CommandError(ExitCode::usage,
                             fmt::format("'{}': element {} of {} is {}, and 'indices_below = \"{}\"' allows 0 to {} in "
                                         "this call",
                                         printable(input.path.string()), place, argument.name, +index, argument.below,
                                         limit - 1));
        }
      }
    });
  });
}

/// Launches the kernel, tuned where --on-miss allows it. What goes wrong names the kernel file.
MadeCall call_kernel(Session& session, const Problem& problem, std::span<void* const> pointers, Stream stream,
                     const RunOptions& options, const SessionOptions& chosen) {
  const std::string& file = options.files.front();
  const FatalSignalReport report(file);
  try {
    return of_kernel_file(*problem.family, [&] {
      return make_call(session, problem, stream, options.array.time,
                       [&] { return session.launch(problem, pointers, stream); });
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_tuned)
      throw Error(error.code(), fmt::format("{}: {}", printable(file), error.what()));
    throw CommandError(
        ExitCode::not_tuned,
        fmt::format("no winner serves {}; {}", problem_label(problem),
                    printable(how_to_tune(problem, chosen, *session.device()))));
  }
}

/// An array of all points of the extents has their shape; any other is a list.
std::vector<std::int64_t> output_shape(const Problem& problem, std::int64_t elements) {
  const std::size_t axes = problem.family->extent_names().size();
  std::vector<std::int64_t> shape(problem.extents.rbegin() + static_cast<std::ptrdiff_t>(3 - axes),
                                  problem.extents.rend());
  const std::int64_t points = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  return points == elements ? shape : std::vector<std::int64_t>{elements};
}

}  // namespace

void set_up_run(CLI::App& app, RunOptions& options) {
  CLI::App* sub = app.add_subcommand("run");
  file_name(sub->add_option("FILES", options.files));
  file_name(one_each(sub->add_option("-o,--output", options.outputs)));
  one_each(sub->add_option("--set", options.settings));
  sub->add_option("--size", options.size)->take_last();
  one_of(sub->add_option("--device", options.array.device)->take_last(), words_in(kDeviceWords));
  file_name(sub->add_option("--cache", options.array.cache)->take_last());
  one_of(sub->add_option("--on-miss", options.array.on_miss)->take_last(), words_in(kMissPolicyWords));
  sub->add_option("--budget", options.array.budget)->take_last();
  sub->add_flag("--time", options.array.time)->disable_flag_override();
}

ExitCode run_run(const RunOptions& options, const Context& context) {
  if (options.files.empty() || !names_kernel_file(options.files.front()))
    throw CommandError(ExitCode::usage, "no kernel file was given: hone run KERNEL.toml IN.npy… -o OUT.npy");
  const TunableKernel& kernel = kernel_in_file(options.files.front());
  const KernelSpec& spec = kernel.spec();
  const std::vector<const KernelArgument*> read = arguments_of(spec, {Kind::in, Kind::inout});
  const std::vector<const KernelArgument*> written = arguments_of(spec, {Kind::inout, Kind::out});
  const std::vector<InputFile> inputs = open_inputs(options, read);
  require_count(options.outputs.size(), written, "output");
  require_apart(options.outputs);
  Problem problem = called_problem(options, spec, inputs, read);
  if (const std::string refusal = problem.family->refuse(problem); !refusal.empty())
    throw CommandError(ExitCode::usage, refusal);
  set_scalars(options, spec, problem);
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].elements != specs[i].elements)
      throw CommandError(ExitCode::usage,
                         fmt::format("'{}' has {} elements, and {} of {} has {}", printable(inputs[i].path.string()),
                                     inputs[i].elements, read[i]->name, problem_label(problem), specs[i].elements));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto argument = static_cast<std::size_t>(read[i] - spec.arguments.data());
    if (!read[i]->below.empty()) check_indices(inputs[i], *read[i], kernel.index_limit(problem, argument));
  }
  std::vector<std::filesystem::path> read_files = source_files(*problem.family);
  for (const InputFile& input : inputs) read_files.push_back(input.place);
  std::deque<OutputFile> outputs;
  for (std::size_t i = 0; i < written.size(); ++i)
    outputs.emplace_back(options.outputs[i], written[i]->dtype, context.out, read_files);

  const std::shared_ptr<Device> device = open_device(options.array.device);
  const OwnStream stream(*device);
  std::vector<DeviceBuffer> arrays;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    arrays.push_back(i < inputs.size() ? load_input(inputs[i], device, stream.get())
                                       : DeviceBuffer(device, std::max<std::size_t>(1, specs[i].size_bytes())));
    pointers.push_back(arrays.back().data());
  }
  SessionOptions chosen = session_options(options.array, context);
  if (chosen.report_untuned)  // the session knows of no kernel file
    chosen.report_untuned = [&](std::string_view) {
      context.err << fmt::format("hone: no winner was tuned for {} on {}, so it is served untuned; {}\n",
                                 problem_label(problem), device->name(),
                                 printable(how_to_tune(problem, chosen, *device)));
    };
  Session session(device, chosen);
  std::string how = "no elements, so nothing was launched";
  if (std::ranges::find(problem.extents, 0) == problem.extents.end()) {
    const MadeCall made = call_kernel(session, problem, pointers, stream.get(), options, chosen);
    how = fmt::format("{} ({}){}", made.policy, name(made.source),
                      made.warm_us > 0 ? fmt::format(", {} µs", format_us(made.warm_us)) : "");
  }
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto buffer = static_cast<std::size_t>(
        std::ranges::find_if(specs, [&](const BufferSpec& each) { return each.name == written[i]->name; }) -
        specs.begin());
    outputs[i].save(output_shape(problem, specs[buffer].elements), pointers[buffer], *device, stream.get());
  }
  const bool is_taken = std::ranges::any_of(options.outputs, [](const auto& path) { return is_standard_output(path); });
  (is_taken ? context.err : context.out) << printable(fmt::format("{} on {}: {}", problem_label(problem),
                                                                  device->name(), how))
                                         << '\n';
  return ExitCode::ok;
}

}  // namespace hone::tuner
