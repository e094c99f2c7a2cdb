#include "tests/cache/faults/simulated_disk.h"

#include <algorithm>
#include <utility>

#include "tests/cache/support.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSectorBytes = 512;

void write_at(std::vector<std::byte>& content, std::size_t offset, std::span<const std::byte> bytes) {
  content.resize(std::max(content.size(), offset + bytes.size()));
  std::ranges::copy(bytes, content.begin() + static_cast<std::ptrdiff_t>(offset));
}

bool coin(std::mt19937& random) { return random() % 2 == 0; }

}  // namespace

SimulatedDisk::SimulatedDisk(fs::path folder) : path_(std::move(folder)) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    now_.emplace(entry.path().filename(), files_.size());
    files_.push_back({read_bytes(entry.path()), {}, false});
  }
  synced_ = now_;
}

void SimulatedDisk::change_folder(FolderChange change) {
  if (change.file) {
    now_[change.name] = *change.file;
  } else {
    now_.erase(change.name);
  }
  pending_.push_back(std::move(change));
}

void SimulatedDisk::sync_folder() {
  synced_ = now_;
  pending_.clear();
}

void SimulatedDisk::apply(const Operation& operation) {
  const fs::path path = operation.path;
  if (path.parent_path() != path_) return;
  const std::string name = path.filename();
  const auto position = now_.find(name);
  if (operation.call == Call::open && operation.creates && position == now_.end()) {
    files_.push_back({{}, {}, operation.is_journal});
    change_folder({name, files_.size() - 1});
  }
  if (position == now_.end()) return;
  File& file = files_[position->second];
  switch (operation.call) {
    case Call::write:
      file.pending.push_back({false, operation.offset, Bytes(operation.bytes.begin(), operation.bytes.end())});
      break;
    case Call::truncate:
      file.pending.push_back({true, operation.offset, {}});
      break;
    case Call::sync:
      file.synced = written(file);
      file.pending.clear();
      if (std::exchange(file.syncs_folder, false)) sync_folder();
      break;
    case Call::remove:
      change_folder({name, std::nullopt});
      if (operation.syncs_folder) sync_folder();
      break;
    default:
      break;
  }
}

SimulatedDisk::Bytes SimulatedDisk::written(const File& file) {
  Bytes content = file.synced;
  for (const Change& change : file.pending) {
    const auto offset = static_cast<std::size_t>(change.offset);
    if (change.is_truncation) {
      content.resize(offset);
    } else {
      write_at(content, offset, change.bytes);
    }
  }
  return content;
}

SimulatedDisk::Bytes SimulatedDisk::torn(const File& file, std::mt19937& random) {
  Bytes content = file.synced;
  const bool keeps_truncations = coin(random);
  for (const Change& change : file.pending) {
    const auto offset = static_cast<std::size_t>(change.offset);
    if (change.is_truncation) {
      if (keeps_truncations) content.resize(offset);
      continue;
    }
    // In pieces that end where a sector does; the last one that is kept is what the sector holds.
    for (std::size_t from = 0; from < change.bytes.size();) {
      const std::size_t sector_end = ((offset + from) / kSectorBytes + 1) * kSectorBytes;
      const std::size_t to = std::min(change.bytes.size(), sector_end - offset);
      if (coin(random)) write_at(content, offset + from, std::span(change.bytes).subspan(from, to - from));
      from = to;
    }
  }
  // The file may have grown before its new sectors were written.
  if (coin(random)) content.resize(std::max(content.size(), written(file).size()));
  for (std::size_t at = file.synced.size(); at < content.size(); at += kSectorBytes) {
    const auto sector = std::span(content).subspan(at, std::min(kSectorBytes, content.size() - at));
    const bool is_unwritten = std::ranges::all_of(sector, [](std::byte byte) { return byte == std::byte{0}; });
    if (!is_unwritten || coin(random)) continue;
    for (std::byte& byte : sector) byte = static_cast<std::byte>(random());
  }
  return content;
}

std::map<std::string, SimulatedDisk::Bytes> SimulatedDisk::after_power_loss(std::mt19937& random) const {
  Folder folder = synced_;
  const std::size_t kept = random() % (pending_.size() + 1);
  for (std::size_t index = 0; index < kept; ++index) {
    const FolderChange& change = pending_[index];
    if (change.file) {
      folder[change.name] = *change.file;
    } else {
      folder.erase(change.name);
    }
  }
  std::map<std::string, Bytes> files;
  for (const auto& [name, index] : folder) files.emplace(name, torn(files_[index], random));
  return files;
}

}  // namespace hone::cache
