#include "tuner/problems/numpy_reference.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include <hone/kernel.h>
#include <nlohmann/json.hpp>

#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::embedded {

std::span<const SourceFile> numpy_script();

}  // namespace hone::embedded

namespace hone::tuner {
namespace {

constexpr int kSeconds = 60;

/// A private folder that is removed with all that is in it.
class NumpyFolder {
 public:
  NumpyFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hone-numpy-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw CommandError(ExitCode::failed, fmt::format("no folder {} could be made: {}", name, std::strerror(errno)));
    path_ = name;
    chmod(path_.c_str(), S_IRWXU);  // the umask may have taken rights from the owner
  }
  ~NumpyFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  NumpyFolder(const NumpyFolder&) = delete;
  NumpyFolder& operator=(const NumpyFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::filesystem::path& path, const void* data, std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  file.close();
  chmod(path.c_str(), S_IRUSR | S_IWUSR);
  if (!file) throw CommandError(ExitCode::failed, fmt::format("{} could not be written", printable(path.string())));
}

/// NumPy's name of an element type that a reference computes with.
std::string_view numpy_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "float64";
    case DType::i8:
      return "int8";
    case DType::i16:
      return "int16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
    case DType::u16:
      return "uint16";
    case DType::u32:
      return "uint32";
    case DType::u64:
      return "uint64";
    default:
      return "bool";
  }
}

/// Floats are computed in double precision.
KernelReference::Parameter parameter_of(const KernelArgument& argument) {
  const bool is_written = argument.kind == KernelArgument::Kind::out || argument.kind == KernelArgument::Kind::inout;
  return {argument.is_array(), is_written, info(argument.dtype).is_floating() ? DType::f64 : argument.dtype};
}

nlohmann::json call_json(const KernelSpec& spec, const std::string& expression,
                         std::span<const KernelReference::Value> values, std::span<const std::int64_t> extents) {
  const std::vector<KernelArgument>& arguments = spec.arguments;
  nlohmann::json call{{"expression", expression}, {"seconds", kSeconds}, {"arguments", nlohmann::json::array()}};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelReference::Parameter parameter = parameter_of(arguments[i]);
    nlohmann::json argument{{"name", arguments[i].name},
                            {"dtype", numpy_name(parameter.dtype)},
                            {"is_read", arguments[i].kind != KernelArgument::Kind::out},
                            {"is_written", parameter.is_written}};
    if (parameter.is_array)
      argument["elements"] = values[i].elements;
    else if (parameter.dtype == DType::f64)
      argument["value"] = values[i].number;
    else
      argument["value"] = static_cast<std::int64_t>(values[i].number);
    call["arguments"].push_back(std::move(argument));
  }
  for (std::size_t i = 0; i < spec.extents.size(); ++i) call["extents"][spec.extents[i]] = extents[i];
  return call;
}

/// Runs Python with what it prints in the file "log". Returns its wait status.
int run_python(const std::string& python, const NumpyFolder& folder) {
  std::vector<std::string> words{python, (folder / "numpy_reference.py").string(), folder.path().string()};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = (folder / "log").string();
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  sigset_t alarm, none;
  sigemptyset(&none);
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  posix_spawnattr_setsigdefault(&attributes, &alarm);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0)
    throw CommandError(ExitCode::failed,
                       fmt::format("the reference is a NumPy expression, and '{}' could not be started: {}; install "
                                   "Python 3 with NumPy, or set HONE_PYTHON to one that has it",
                                   printable(python), std::strerror(failure)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Says what went wrong in the process of the program `python`; "" if nothing did.
std::string fault_of(int status, const std::string& python, const NumpyFolder& folder) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return fmt::format("the expression took more than {} s", kSeconds);
  const std::string error = content_of(folder / "error");
  if (!error.empty()) return error;
  return fmt::format("the Python '{}' ended {} {}; HONE_PYTHON names another: {}", python,
                     WIFSIGNALED(status) ? "by signal" : "with code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), content_of(folder / "log"));
}

void evaluate(const KernelSpec& spec, const std::string& expression, std::span<const KernelReference::Value> values,
              std::span<const std::int64_t> extents) {
  const std::vector<KernelArgument>& arguments = spec.arguments;
  const NumpyFolder folder;
  const std::string call = call_json(spec, expression, values, extents).dump();
  const std::string_view script = embedded::numpy_script().front().text;
  write_bytes(folder / "call.json", call.data(), call.size());
  write_bytes(folder / "numpy_reference.py", script.data(), script.size());
  const auto bytes_of = [&](std::size_t i) {
    return values[i].elements * static_cast<std::size_t>(info(parameter_of(arguments[i]).dtype).size_bytes);
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].is_array() && arguments[i].kind != KernelArgument::Kind::out)
      write_bytes(folder / fmt::format("{}.in", i), values[i].data, bytes_of(i));
  const char* const named = std::getenv("HONE_PYTHON");
  const std::string python = named && *named ? named : "python3";
  const int status = run_python(python, folder);
  if (const std::string fault = fault_of(status, python, folder); !fault.empty())
    throw CommandError(ExitCode::input, printable(fault));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!parameter_of(arguments[i]).is_written) continue;
    const std::string result = content_of(folder / fmt::format("{}.out", i));
    if (result.size() != bytes_of(i))
      throw CommandError(ExitCode::failed,
                         fmt::format("the Python '{}' left {} bytes of {}, not {}; HONE_PYTHON names another",
                                     printable(python), result.size(), printable(arguments[i].name), bytes_of(i)));
    std::memcpy(values[i].data, result.data(), result.size());
  }
}

}  // namespace

KernelReference numpy_reference(const KernelSpec& spec, std::string expression, std::string place) {
  std::vector<KernelReference::Parameter> parameters;
  for (const KernelArgument& argument : spec.arguments) parameters.push_back(parameter_of(argument));
  // All that is needed of it: its parameters may view names that the caller is about to drop.
  KernelSpec seen;
  seen.extents = spec.extents;
  seen.arguments = spec.arguments;
  return KernelReference::function(
      std::move(parameters),
      [seen = std::move(seen), expression = std::move(expression), place = std::move(place)](
          std::span<const KernelReference::Value> values, std::span<const std::int64_t> extents) {
        try {
          evaluate(seen, expression, values, extents);
        } catch (const CommandError& error) {
          throw CommandError(error.code(), place + "reference.numpy: " + error.what());
        }
      });
}

}  // namespace hone::tuner
