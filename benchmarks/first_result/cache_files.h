// The cache files that the first result is looked up in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hone::benchmarks {

/// Tunes sums of kFirstResultElements floats, and of two other sizes, into a new cache file.
void tune_few(const std::string& device, const std::filesystem::path& file);

/// A copy of the file in which copies of its winner, for other sizes, alignments, contexts, operations and dtypes, make
/// `winners` in all; a hundredth of them differ from the one that is asked for in their sizes only.
void copy_with_many(const std::filesystem::path& few, std::int64_t winners, const std::filesystem::path& file);

/// A copy of the file that has been evicted to half of its bytes.
void copy_evicted(const std::filesystem::path& few, const std::filesystem::path& file);

}  // namespace hone::benchmarks
