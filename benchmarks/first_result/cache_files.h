// The cache files that the first result is looked up in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hone::benchmarks {

/// Tunes sums of kFirstResultElements floats, and of two other sizes, into a new cache file.
void tune_few(const std::string& device, const std::filesystem::path& file);

enum class CodeOfCopies { shared, own };

/// A copy of the file with `winners` copies of its winner for other sizes, alignments, contexts and operations; a
/// hundredth of them differ from the one that is asked for in their sizes only.
void copy_with_many(const std::filesystem::path& few, std::int64_t winners, CodeOfCopies code,
                    const std::filesystem::path& file);

/// Evicts to the least size that a limit may be. Throws Error(cache_failed) if trials and code of others need not go
/// for that, or if the code of the sum of kFirstResultElements floats, which was used last, is gone.
void evict(const std::filesystem::path& file);

}  // namespace hone::benchmarks
