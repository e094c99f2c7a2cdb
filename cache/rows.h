// Rows to records and back, with the digests that tell an intact row from a damaged one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/connection.h"
#include "cache/records.h"

namespace hone::cache {

/// A winner as it stands in the file.
struct WinnerRow {
  StoredWinner stored;  ///< its binary_digest is the key of its binary
  bool intact = false;  ///< the digests of the row and of its device hold; nothing is said of the binary
};

/// Winners with their device and toolchain, for read_winner(). `tail` holds further SQL: WHERE, ORDER BY. The columns
/// of device are d.*, of toolchain t.*, of winner w.*; the joins are made in this order.
Statement select_winners(Connection& connection, std::string_view tail);
WinnerRow read_winner(Statement& statement);

/// The winner with this id, found by it; nullopt when there is none, or its device or toolchain is not there. Where
/// damage has left several rows that could be meant, an intact one.
std::optional<WinnerRow> find_winner(Connection& connection, std::int64_t id);

/// A device as it stands in the file.
struct DeviceRow {
  std::int64_t id = 0;
  DeviceRecord device;
  bool intact = false;
};

/// The row whose winners serve on `device` (same_device()): that with its own identity, else another intact one.
std::optional<DeviceRow> find_shared_device(Connection& connection, const DeviceRecord& device);

/// The same, added where there is none; brings what is no part of the key up to date where the identity is the same.
DeviceRow share_device(Connection& connection, const DeviceRecord& device);

/// By the key of `device`, or by its id.
std::optional<DeviceRow> find_device(Connection& connection, const DeviceRecord& device);
std::optional<DeviceRow> find_device(Connection& connection, std::int64_t id);

std::string binary_digest(const BinaryRecord& binary);

/// nullopt when there is none with this digest, or when what is there does not have it.
std::optional<BinaryRecord> read_binary(Connection& connection, std::string_view digest);

/// A tuning as it stands in the file.
struct TuningRow {
  TuningRecord tuning;
  bool intact = false;
};

std::optional<TuningRow> read_tuning(Connection& connection, std::int64_t winner_id);

/// Write a row unless it is there already, correct what differs outside of its key, and return its key.
std::int64_t put_device(Connection& connection, const DeviceRecord& device);
std::int64_t put_toolchain(Connection& connection, const ToolchainRecord& toolchain);
std::string put_binary(Connection& connection, const BinaryRecord& binary);

/// The winner with this key, whatever its driver.
std::optional<WinnerRow> find_same_key(Connection& connection, std::int64_t device, std::int64_t toolchain,
                                       const ProblemRecord& problem);

/// Adds a winner (`winner.stored.id` is not used) and returns its id, which no earlier winner ever had.
std::int64_t insert_winner(Connection& connection, std::int64_t device, std::int64_t toolchain,
                           const WinnerRow& winner);
void insert_tuning(Connection& connection, std::int64_t winner_id, const TuningRecord& tuning);

/// Removes a winner with its tuning and trials, and its binary if no other winner has the same.
void remove_winner(Connection& connection, const WinnerRow& winner);

}  // namespace hone::cache
