// report_data(): what the page of `hone report` draws, as compact JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

/// One cache of a report.
struct ReportedCache {
  std::filesystem::path path;
  std::vector<cache::StoredWinner> all;  ///< of the file: ceilings are those of all
  std::vector<std::size_t> named;        ///< indices of those that the options name
  std::uint64_t damaged_winners = 0;     ///< left out of `all`
};

/// The counts that a report has of each cache, for the line that the command prints.
struct ReportedCounts {
  std::size_t winners = 0, shown_winners = 0;
  std::size_t tunings = 0, shown_tunings = 0;  ///< tuned winners of their own class, and those with their trials
  std::size_t damaged_tunings = 0;             ///< whose trials do not have their digest
};

struct ReportData {
  std::string json;                    ///< ASCII, without "<", so that it can stand in a page
  std::vector<ReportedCounts> counts;  ///< parallel to the caches
};

/// Reads trials from the files. The JSON has at most about `most_bytes`: first the winners (tuned ones first, then the
/// newest), and then trials, at first of one problem of each operation and dtype. docs/cli.md says what is left out.
/// Texts from the files have no control characters.
ReportData report_data(std::span<const ReportedCache> caches, std::int64_t made_at, std::size_t most_bytes);

}  // namespace hone::tuner
