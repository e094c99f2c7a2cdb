// Stands in for libFuzzer where the compiler has none: runs the files and folders it is given, then random changes of
// them. Knows -max_total_time=SECONDS, -runs=COUNT and -seed=NUMBER; ignores other options of libFuzzer. An input that
// ends the process is left in the file crash-input.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

const Input* current = nullptr;

/// Only what may be called in a signal handler.
void keep_input(int signal) {
  const int file = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && current != nullptr) static_cast<void>(!::write(file, current->data(), current->size()));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const Input& input) {
  current = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  current = nullptr;
}

void read_inputs(const fs::path& path, std::vector<Input>& inputs) {
  if (fs::is_directory(path)) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) read_inputs(file, inputs);
    return;
  }
  std::ifstream in(path, std::ios::binary);
  inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

/// One of the changes that fuzzers make: bits, bytes, numbers at the edge, pieces removed, doubled or taken from
/// elsewhere.
void change(Input& input, const Input& other, std::mt19937_64& random) {
  constexpr std::uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '}', '\n', '0'};
  const std::size_t at = random() % input.size();
  const std::size_t length = std::min<std::size_t>(1 + random() % 64, input.size() - at);
  const auto begin = input.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(length);
  const std::uint64_t kind = random() % 6;
  if (kind == 0) *begin ^= static_cast<std::uint8_t>(1u << random() % 8);
  if (kind == 1) *begin = static_cast<std::uint8_t>(random());
  if (kind == 2) *begin = kEdges[random() % std::size(kEdges)];
  if (kind == 3) input.erase(begin, end);
  if (kind == 4) {
    const Input piece(begin, end);
    input.insert(begin, piece.begin(), piece.end());
  }
  if (kind == 5 && other.size() >= length) {
    const std::size_t from = random() % (other.size() - length + 1);
    std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), length, begin);
  }
}

Input changed(Input input, const Input& other, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes) {
    if (input.empty()) input.push_back(static_cast<std::uint8_t>(random()));
    change(input, other, random);
  }
  return input;
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::uint64_t seconds = 0, runs = 0, seed = 1;
  std::vector<Input> inputs;
  for (const std::string_view argument : std::span(arguments + 1, static_cast<std::size_t>(argument_count - 1))) {
    const auto value = [&] { return std::stoull(std::string(argument.substr(argument.find('=') + 1))); };
    if (argument.starts_with("-max_total_time="))
      seconds = value();
    else if (argument.starts_with("-runs="))
      runs = value();
    else if (argument.starts_with("-seed="))
      seed = value();
    else if (!argument.starts_with("-"))
      read_inputs(argument, inputs);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, keep_input);
  for (const Input& input : inputs) run(input);
  fmt::print("{} inputs of the corpus\n", inputs.size());
  if (inputs.empty()) inputs.emplace_back();

  std::mt19937_64 random(seed);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t done = 0;
  const auto goes_on = [&] {
    return (seconds > 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds(seconds)) || done < runs;
  };
  for (; goes_on(); ++done) {
    ::alarm(60);
    const Input& other = inputs[random() % inputs.size()];
    run(changed(inputs[random() % inputs.size()], other, random));
  }
  fmt::print("{} changed ones, without a crash\n", done);
}
