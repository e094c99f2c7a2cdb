// collect_lines(): a whole export, line by line, by its grammar.
#pragma once

#include <iosfwd>

#include "cache/maintenance/exchange.h"

namespace hone::tuner {

/// Reads an export to its end and collects its winners, and its code where that is wanted, in `import`. Holds one line
/// in memory at a time.
///
/// Throws LineError, "line <number>: <what is wrong>", for anything that hone cache export does not write: a line that
/// is none, an end that is missing or counts otherwise, a second winner for one key, a digest that does not hold. Then
/// the import is of no use any more. Throws StoreError where it has no room.
void collect_lines(std::istream& in, cache::Import& import, bool with_binaries);

}  // namespace hone::tuner
