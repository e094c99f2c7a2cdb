// Claims: which problem classes are being tuned right now, so that of many processes with the same miss one tunes.
#pragma once

#include <chrono>
#include <string>

#include "cache/connection.h"
#include "cache/records.h"

namespace hone::cache {

/// No claim is believed for longer, whatever its row says: a clock may have been wrong, or the row damaged.
inline constexpr std::chrono::milliseconds kLongestLease = std::chrono::minutes(10);

/// All of these are called inside a transaction; but for is_claimed(), a writing one. They throw StoreError.

/// Takes the class of `key` for `owner`, unless another living owner has it.
bool take_claim(Connection& connection, const KeyRecord& key, const std::string& owner,
                std::chrono::milliseconds lease);

/// Extends the lease from now on; false when the claim is not `owner`'s any more.
bool renew_claim(Connection& connection, const KeyRecord& key, const std::string& owner,
                 std::chrono::milliseconds lease);

/// Ends the claim, if it still is `owner`'s.
void release_claim(Connection& connection, const KeyRecord& key, const std::string& owner);

/// True if a living owner has the class.
bool is_claimed(Connection& connection, const KeyRecord& key);

/// 128 random bits in hexadecimal digits: nobody else's name.
std::string new_owner();

}  // namespace hone::cache
