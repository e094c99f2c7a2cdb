// One winner in detail: its key, its resources, its runners-up, and what was rejected and why.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"
#include "tuner/context/context.h"
#include "tuner/text/reasons.h"

namespace hone::tuner {

/// "reduce sum f32"; with "NaN ignored" and "graph" behind it where that is so.
std::string problem_text(const cache::ProblemRecord& problem);

/// "1250 ± 12": the energy of a call in microjoules, with half of its interval; "–" where it was not measured.
std::string energy_text(const cache::TrialRecord& trial);

/// "NVIDIA H200 (cuda, sm_90): 132 SMs, 4916 GB/s"; the bandwidth only where it is known.
std::string device_text(const cache::DeviceRecord& device);

/// "862..1217", "5793..11585 × 46..90": the ranges of the extents that the family uses. Of a family that is not built
/// in, an extent after the first that was 1 when the winner was chosen is left out.
std::string sizes_text(const cache::StoredWinner& stored);

/// The same with other ranges: those of several classes.
std::string sizes_text(const cache::StoredWinner& stored, const std::array<cache::RangeRecord, 3>& sizes);

/// "1024", "8192 × 64": the extents at which the winner was measured.
std::string measured_at_text(const cache::StoredWinner& stored);

/// The extents that the winner was tuned at, or others of its class where those are not in it.
Extents extents_of_class(const cache::StoredWinner& stored);

/// "hone tune --op sum --dtype f32 --size 1000 --cache …": what measures the class of a winner of the cache file; with
/// --again where it was tuned here.
std::string tune_command(const cache::StoredWinner& stored, const std::filesystem::path& cache);

/// The first digits of a digest, which tell sources apart.
std::string short_digest(std::string_view digest);

/// "tuned" (measured in its class), "lent" (measured at another size), "nearest" (untuned, of the nearest tuned class),
/// "shipped" (tuned on a device that is the same, and shipped with Hone) or "heuristic".
std::string_view how_text(const cache::StoredWinner& stored);

/// Says what a winner that is "nearest" was tuned for, and what kind of loan that is: "reduce max f32 n=1048576, an
/// operation that moves as many bytes with as much arithmetic".
std::string lender_text(const cache::StoredWinner& stored);

/// Where a winner that is "shipped" was tuned: "NVIDIA H100 80GB HBM3, 2026-11-25, Hone 0.1.0, driver 13.0".
std::string origin_text(const cache::StoredWinner& stored);

/// True if the winner's times were measured in its class: "tuned". Otherwise they are those of another one.
bool is_measured(const cache::StoredWinner& stored);

/// The winner of `all` in whose class `stored` was measured, and which has the trials: itself, or another one of the
/// same problem, device and kernel sources. nullptr: it is not stored any more.
const cache::StoredWinner* measured_winner(const std::vector<cache::StoredWinner>& all,
                                           const cache::StoredWinner& stored);

/// Winners' figures for tables and JSON; 0 where unknown, times and bandwidths also where not is_measured().
double winner_occupancy(const cache::StoredWinner& stored);
double winner_us(const cache::StoredWinner& stored);
double winner_gbps(const cache::StoredWinner& stored);

/// Rejected, wrong and failed trials by their reason, the most frequent first.
std::vector<ReasonCount> count_reasons(const std::vector<cache::TrialRecord>& trials);

/// `measured`: see measured_winner(). `cache`: the file. `all`: every trial instead of the best ten.
void print_detail(const cache::StoredWinner& stored, const cache::StoredWinner* measured,
                  const std::filesystem::path& cache, const std::optional<cache::TuningRecord>& tuning, bool all,
                  const Context& context);

}  // namespace hone::tuner
