#include "runtime/jit/binary_memo.h"

#include "cache/digest.h"

namespace hone {
namespace {

std::string key_of(const Unit& unit) {
  cache::Digest digest;
  digest.add("source", unit.source);
  for (const SourceFile& header : unit.headers) digest.add("name", header.name).add("text", header.text);
  return digest.hex();
}

}  // namespace

std::vector<CompileOutcome> BinaryMemo::compile(const Device& device, std::span<const Unit> units,
                                                std::stop_token stop, const CompileProgress& on_progress,
                                                std::optional<std::chrono::steady_clock::time_point> deadline,
                                                std::size_t spare_cores) {
  std::vector<CompileOutcome> outcomes(units.size());
  std::vector<std::string> keys;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < units.size(); ++i) {
    keys.push_back(key_of(units[i]));
    outcomes[i].binary = known(keys[i]);
    if (!outcomes[i].binary) missing.push_back(i);
  }
  const auto compile_missing = [&](std::size_t i) {
    return compile_once(device, units[missing[i]], keys[missing[i]]);
  };
  std::vector<CompileOutcome> compiled =
      compile_all(missing.size(), compile_missing, std::move(stop), on_progress, deadline, spare_cores);
  for (std::size_t i = 0; i < missing.size(); ++i) outcomes[missing[i]] = std::move(compiled[i]);
  return outcomes;
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
    binary = std::make_shared<const Binary>(device.compile(unit));
  } catch (...) {
    end();
    throw;
  }
  end();
  return binary;
}

std::uint64_t BinaryMemo::compiled() const {
  const std::scoped_lock lock(mutex_);
  return compiled_;
}

}  // namespace hone
