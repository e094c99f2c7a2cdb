// Figures derived from what was measured, and their spelling in tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hone/candidate.h>

#include "tuner/text/table.h"

namespace hone::tuner {

/// Shortens "block_threads=256 vector_bytes=16 unroll=4 tail=shared" to "256t 16B x4 shared". Other numbers stay
/// "name=value", and named values stand for themselves; min_blocks=1 is left out.
std::string short_policy(std::string_view policy);

/// Geometry::max_blocks in a table, kUnknown for 0, and in a sentence: "132" and "at most 132 blocks", or "1/tile" and
/// "a block for every tile".
std::string blocks_cell(std::int64_t max_blocks);
std::string blocks_text(std::int64_t max_blocks);

/// Resident threads over the SM's limit, 0 … 1; 0 when a factor is unknown.
double occupancy(int resident_blocks, int block_threads, int max_threads_per_sm);

/// 10^9 bytes per second; 0 when the time is unknown.
double bandwidth_gbps(std::int64_t bytes, double microseconds);

/// Figures as text, kUnknown for 0.
std::string gbps_text(double gbps);
std::string percent_text(double fraction);
std::string us_text(double microseconds);

/// How much slower than the winner, 0.05 for 5 %: "+5.0 %", "+31 %".
std::string gap_text(double gap);

/// `part` of `whole` as a percentage, kUnknown when either is unknown.
std::string share_text(double part, double whole);

/// Where a winner came from: "tuned now", "cache", "cache, untuned", "nearest, untuned", …
std::string source_text(ChoiceSource source, bool tuned);

/// "725..1448", or one number.
std::string range_text(std::int64_t first, std::int64_t last);

}  // namespace hone::tuner
