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
  std::vector<Unit> missing;
  std::vector<std::size_t> missing_index;
  for (const Unit& unit : units) keys.push_back(key_of(unit));
  {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < units.size(); ++i) {
      const auto known = binaries_.find(keys[i]);
      if (known != binaries_.end()) {
        outcomes[i].binary = known->second;
      } else {
        missing.push_back(units[i]);
        missing_index.push_back(i);
      }
    }
  }
  if (missing.empty()) return outcomes;

  std::vector<CompileOutcome> compiled =
      compile_all(device, missing, std::move(stop), on_progress, deadline, spare_cores);
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    if (compiled[i].started()) ++compiled_;
    if (compiled[i].binary) binaries_.emplace(keys[missing_index[i]], compiled[i].binary);
    outcomes[missing_index[i]] = std::move(compiled[i]);
  }
  return outcomes;
}

std::uint64_t BinaryMemo::compiled() const {
  const std::scoped_lock lock(mutex_);
  return compiled_;
}

}  // namespace hone
