#include "runtime/jit/binary_memo.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "cache/digest.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

/// Compiling ahead leaves these to the thread that enqueues what is timed, and to the driver's.
constexpr std::size_t kSpareCores = 2;

std::size_t most_ahead(const Device& device) {
  const std::size_t cores = std::thread::hardware_concurrency();
  return std::min(cores > kSpareCores ? cores - kSpareCores : 1, device.parallel_compilations());
}

}  // namespace

std::string unit_digest(const Unit& unit) {
  cache::Digest digest;
  digest.add("source", unit.source);
  for (const std::string& entry : unit.entries) digest.add("entry", entry);
  for (const SourceFile& header : unit.headers) digest.add("name", header.name).add("text", header.text);
  for (const std::string& folder : unit.include_folders) digest.add("folder", folder);
  return digest.hex();
}

/// Counts something for as long as it lasts.
class BinaryMemo::Counted {
 public:
  Counted(BinaryMemo& memo, std::size_t& count, std::unique_lock<std::mutex> held) : memo_(&memo), count_(&count) {
    ++*count_;
    held.unlock();
  }
  ~Counted() {
    if (!memo_) return;
    const std::scoped_lock lock(memo_->mutex_);
    --*count_;
    memo_->changed_.notify_all();
  }
  Counted(Counted&& other) noexcept : memo_(std::exchange(other.memo_, nullptr)), count_(other.count_) {}
  Counted& operator=(Counted&&) = delete;

 private:
  BinaryMemo* memo_;
  std::size_t* count_;
};

std::vector<CompileOutcome> BinaryMemo::compile(const Device& device, std::span<const Unit> units,
                                                std::stop_token stop, const CompileProgress& on_progress,
                                                std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::vector<CompileOutcome> outcomes(units.size());
  std::vector<std::string> keys;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < units.size(); ++i) {
    keys.push_back(unit_digest(units[i]));
    outcomes[i].binary = known(keys[i]);
    if (!outcomes[i].binary) missing.push_back(i);
  }
  if (missing.empty()) return outcomes;
  std::vector<Counted> wanted;
  for (std::size_t i = 0; i < missing.size(); ++i) wanted.emplace_back(*this, wanted_, std::unique_lock(mutex_));
  const auto compile_missing = [&](std::size_t i) {
    const Counted until_done = std::move(wanted[i]);
    return compile_once(device, units[missing[i]], keys[missing[i]]);
  };
  std::vector<CompileOutcome> compiled =
      compile_all(missing.size(), compile_missing, std::move(stop), on_progress, deadline);
  for (std::size_t i = 0; i < missing.size(); ++i) outcomes[missing[i]] = std::move(compiled[i]);
  return outcomes;
}

BinaryMemo::Ahead BinaryMemo::compile_ahead(const Device& device, std::function<std::vector<Unit>()> list_units,
                                            std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::stop_source stop;
  auto run = [this, &device, list_units = std::move(list_units), deadline, token = stop.get_token()] {
    const std::vector<Unit> units = list_units();
    const auto compile = [&](std::size_t i) { return compile_once_ahead(device, units[i], token); };
    compile_all(units.size(), compile, token, {}, deadline, most_ahead(device));
  };
  const std::scoped_lock lock(mutex_);
  std::erase_if(compiling_ahead_, [](const std::future<void>& each) {
    return each.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  // Nobody asks for what it throws: whoever needs the units will meet it, too.
  compiling_ahead_.push_back(std::async(std::launch::async, std::move(run)));
  return Ahead(std::move(stop));
}

void BinaryMemo::finish_ahead() {
  std::vector<std::future<void>> all;  // its end waits, when the lock is released
  const std::scoped_lock lock(mutex_);
  all.swap(compiling_ahead_);
}

/// Null when it was not begun.
std::shared_ptr<const Binary> BinaryMemo::compile_once_ahead(const Device& device, const Unit& unit,
                                                             const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool may_begin = changed_.wait(lock, stop, [&] { return wanted_ + ahead_ < most_ahead(device); });
  if (!may_begin || stop.stop_requested()) return nullptr;
  const Counted compilation(*this, ahead_, std::move(lock));
  return compile_once(device, unit, unit_digest(unit));
}

std::shared_ptr<const Binary> BinaryMemo::known(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto at = binaries_.find(key);
  return at != binaries_.end() ? at->second : nullptr;
}

std::shared_ptr<const Binary> BinaryMemo::compile_once(const Device& device, const Unit& unit, const std::string& key) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !under_way_.contains(key); });
  if (const auto at = binaries_.find(key); at != binaries_.end()) return at->second;
  under_way_.insert(key);
  ++compiled_;
  lock.unlock();

  std::shared_ptr<const Binary> binary;
  const auto end = [&] {
    lock.lock();
    under_way_.erase(key);
    changed_.notify_all();
    if (binary) binaries_.emplace(key, binary);
  };
  try {
    const TraceRange traced([&] { return "compile " + unit.name; });
    binary = std::make_shared<const Binary>(device.compile(unit));
  } catch (...) {
    end();
    throw;
  }
  end();
  return binary;
}

std::shared_ptr<const Module> BinaryMemo::load(Device& device, const Binary& binary,
                                               const std::vector<std::string>& entries) {
  cache::Digest digest;
  digest.add("format", binary.format).add("architecture", binary.architecture);
  digest.add("code", std::string_view(reinterpret_cast<const char*>(binary.code.data()), binary.code.size()));
  for (const std::string& symbol : binary.entries) digest.add("symbol", symbol);
  for (const std::string& entry : entries) digest.add("entry", entry);
  const std::string key = digest.hex();
  const std::scoped_lock lock(loading_);
  if (const auto at = modules_.find(key); at != modules_.end())
    if (std::shared_ptr<const Module> module = at->second.lock()) return module;
  std::shared_ptr<const Module> module = device.load(binary, entries);
  if (modules_.size() >= most_modules_) {
    std::erase_if(modules_, [](const auto& each) { return each.second.expired(); });
    most_modules_ = std::max(most_modules_, 2 * modules_.size());
  }
  modules_[key] = module;
  return module;
}

std::uint64_t BinaryMemo::compiled() const {
  const std::scoped_lock lock(mutex_);
  return compiled_;
}

}  // namespace hone
