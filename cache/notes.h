// Notes: what sessions tell about the winners that they used and the ones that they missed. Advice, without digests.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/connection.h"
#include "cache/records.h"

namespace hone::cache {

/// Both inside a writing transaction. They throw StoreError.
void write_notes(Connection& connection, const Notes& notes, std::int64_t seconds_since_1970);

/// The missed classes, the heaviest first. Inside a transaction; nothing before version 2.
std::vector<StoredMiss> read_misses(Connection& connection);

/// Inside a writing transaction: ends the claims, or the notes of misses, of the classes that `key` covers.
void end_claims(Connection& connection, const KeyRecord& key, std::int64_t device, std::int64_t toolchain);
void end_misses(Connection& connection, const KeyRecord& key, std::int64_t device, std::int64_t toolchain);

}  // namespace hone::cache
