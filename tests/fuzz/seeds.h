// The common part of the fuzzers and the maker of their corpus: the winners in it, and a folder to work in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cache/maintenance/entry.h"
#include "cache/records.h"

namespace hone::cache {

/// The winners in the files of the corpus. No other may ever be served out of a file made from them: random changes
/// do not hit a digest of 128 bits.
const std::vector<Publication>& seed_publications();

/// Returns the query that finds one of them.
Query query_of(const Publication& publication);

Entry entry_of(const Publication& publication);

/// A folder in memory where there is such a file system, made once for the process and removed at its end.
const std::filesystem::path& work_folder();

/// Removes everything in the work folder, and writes one file there. Returns its path.
std::filesystem::path write_work_file(std::span<const std::uint8_t> bytes);

/// Ends the process as a crash, which is what fuzzers look for.
[[noreturn]] void fail(const std::string& what);

}  // namespace hone::cache
