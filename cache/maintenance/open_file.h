// ReadingFile and WritingFile: a cache file that a maintenance command works on, in one transaction without a deadline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "cache/connection.h"
#include "cache/schema.h"

namespace hone::cache {

/// The absolute path of the file itself, where `path` is relative or a link to it; it need not exist. Throws
/// StoreError.
std::filesystem::path resolved_path(const std::filesystem::path& path);

/// One state of a file, which may be anybody's: it is only looked at. Waits for writers as publications do. Not
/// movable. Throws StoreError, also where there is no file (unopenable).
class ReadingFile {
 public:
  explicit ReadingFile(const std::filesystem::path& path);

  std::int64_t schema_version() const { return schema_version_; }

  /// Without any content, so also without tables.
  bool is_empty() const { return schema_version_ == kEmptyFile; }

  Connection& connection() const { return *connection_; }

 private:
  void open(const std::filesystem::path& file);

  std::unique_ptr<Connection> connection_;
  std::optional<Transaction> transaction_;
  std::int64_t schema_version_ = kEmptyFile;
};

/// A file with our schema, made if there is none, that nobody else writes to meanwhile. What is done to it happens with
/// commit(), or not at all. Not movable. Throws StoreError.
class WritingFile {
 public:
  /// `trust`: owned or alone.
  explicit WritingFile(const std::filesystem::path& path, Trust trust = Trust::owned);

  Connection& connection() { return *connection_; }

  /// Ends the transaction. The connection stays open.
  void commit();

  /// After commit(): makes the file as small as what is in it. What was committed stays so; if others keep the file
  /// locked, the pages remain for what is stored next.
  void give_back_free_pages();

 private:
  void open(const std::filesystem::path& file, Trust trust);

  std::unique_ptr<Connection> connection_;
  std::optional<Transaction> transaction_;
};

}  // namespace hone::cache
