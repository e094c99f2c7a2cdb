// What an interrupted write has left beside a cache file, looked at before SQLite sees it.
#pragma once

#include <filesystem>

namespace hone::cache {

/// Whether beside the file lies a journal that opening the file for writing would play back into it, or that another
/// process is writing right now.
///
/// Throws StoreError(unopenable) when one of the files that SQLite keeps beside a database is no regular file (opening
/// a FIFO would wait for ever), or the journal ends in the name of a super-journal. SQLite deletes the file of that
/// name when it plays the journal back, whatever it is; transactions of a cache never span files, so that none of its
/// journals has one. The format: https://sqlite.org/fileformat2.html#the_rollback_journal, and at the end of the file
/// the name, its length and checksum as big-endian words, and the journal's magic number.
bool has_hot_journal(const std::filesystem::path& file);

}  // namespace hone::cache
