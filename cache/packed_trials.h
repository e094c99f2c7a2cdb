// The trials of a tuning as one value of a file: a packed JSON array with an array of values for each trial.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cache/connection.h"
#include "cache/packed.h"
#include "cache/records.h"

namespace hone::cache {

/// Up to this version of the schema, files have a row for each trial.
inline constexpr std::int64_t kLastVersionOfTrialRows = 7;

/// The values of a trial have the order of each_field(). Times that are not numbers are null.
Packed pack_trials(const std::vector<TrialRecord>& trials);

/// nullopt if `packed` did not come from pack_trials(); that no value was changed only the tuning's digest tells.
std::optional<std::vector<TrialRecord>> unpack_trials(Packed packed);

/// The same from a table with a row a trial, as files had it up to version 7; `schema_version` is that of the table.
std::vector<TrialRecord> read_trial_rows(Connection& connection, std::string_view table, std::int64_t winner_id,
                                         std::int64_t schema_version);

/// Gives tunings that have no trials of their own those of such a table.
void pack_trial_rows(Connection& connection, std::string_view table, std::int64_t schema_version);

}  // namespace hone::cache
