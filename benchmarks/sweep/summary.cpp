#include "benchmarks/sweep/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hone/tuned_reduce.h>

#include "benchmarks/common/report.h"

namespace hone::benchmarks {
namespace {

constexpr std::size_t kWorstCells = 12;
constexpr std::int64_t kLargeBytes = std::int64_t{256} << 20;

std::string_view operation_of(const Row& row) { return reduce_family().operations()[row.cell.operation]; }
std::string_view dtype_of(const Row& row) { return info(row.cell.dtype).name; }

std::string describe(const Row& row) {
  return fmt::format("{} {} n={}{} in a {}", operation_of(row), dtype_of(row), row.cell.n,
                     row.offset == 0 ? "" : fmt::format(" offset {}", row.offset), name(row.cell.setting));
}

std::vector<std::string> names_of_peers(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows)
    for (const PeerTiming& peer : row.peers)
      if (std::find(names.begin(), names.end(), peer.peer) == names.end()) names.push_back(peer.peer);
  return names;
}

std::set<Setting> settings_of(const std::vector<Row>& rows) {
  std::set<Setting> settings;
  for (const Row& row : rows) settings.insert(row.cell.setting);
  return settings;
}

/// Ratios to a peer in one setting, grouped by a name of the row.
template <class Group>
std::map<std::string, std::vector<double>> ratios_by(const std::vector<Row>& rows, std::string_view peer,
                                                     const Setting& setting, Group group) {
  std::map<std::string, std::vector<double>> ratios;
  for (const Row& row : rows)
    if (const double ratio = row.ratio_to(peer); row.cell.setting == setting && !std::isnan(ratio))
      ratios[std::string(group(row))].push_back(ratio);
  return ratios;
}

std::string peer_table(const std::vector<Row>& rows, const std::string& peer) {
  const std::set<Setting> settings = settings_of(rows);
  std::string text =
      fmt::format("\n{} time / Hone time: geometric mean (worst of how many cells)\n{:<16}", peer, "");
  for (const Setting& setting : settings) text += fmt::format("{:<30}", name(setting));
  text += "\n";
  const auto add = [&](auto group) {
    std::map<std::string, std::map<Setting, std::vector<double>>> lines;
    for (const Setting& setting : settings)
      for (auto& [name, ratios] : ratios_by(rows, peer, setting, group)) lines[name][setting] = std::move(ratios);
    for (auto& [name, ratios] : lines) {
      text += fmt::format("{:<16}", name);
      for (const Setting& setting : settings) text += fmt::format("{:<30}", ratio_summary(ratios[setting]));
      text += "\n";
    }
  };
  add(operation_of);
  add(dtype_of);
  add([](const Row& row) { return fmt::format("n={:>11}", row.cell.n); });  // in the order of sizes
  add([](const Row& row) { return fmt::format("offset {}", row.offset); });
  add([](const Row& row) { return row.source; });
  add([](const Row&) { return "all"; });
  return text;
}

/// The cells in which the peer is nearest to Hone, or ahead.
std::string worst_table(const std::vector<Row>& rows, const std::string& peer) {
  std::vector<const Row*> worst;
  for (const Row& row : rows)
    if (!std::isnan(row.ratio_to(peer))) worst.push_back(&row);
  std::sort(worst.begin(), worst.end(),
            [&](const Row* a, const Row* b) { return a->ratio_to(peer) < b->ratio_to(peer); });
  std::string text = fmt::format("\nWorst against {}:\n", peer);
  for (std::size_t i = 0; i < std::min(worst.size(), kWorstCells); ++i)
    text += fmt::format("  {:>5.2f}  {:<48} {:>9.2f} us by {}\n", worst[i]->ratio_to(peer), describe(*worst[i]),
                        worst[i]->hone.median_us, worst[i]->policy);
  return text;
}

/// Large cells by their share of the ceiling, the furthest from it first.
std::string share_table(const std::vector<Row>& rows) {
  std::vector<const Row*> large;
  for (const Row& row : rows)
    if (row.bytes >= kLargeBytes && !std::isnan(row.percent_of_ceiling())) large.push_back(&row);
  if (large.empty()) return "";
  const auto percent = [](const Row* row) { return row->percent_of_ceiling(); };
  std::sort(large.begin(), large.end(), [&](const Row* a, const Row* b) { return percent(a) < percent(b); });
  std::string text =
      fmt::format("\nOf the fastest that anyone read the array, {} MiB and more: {} of {} cells reach 98 %; furthest "
                  "from it:\n",
                  kLargeBytes >> 20,
                  std::count_if(large.begin(), large.end(), [&](const Row* row) { return percent(row) >= 98; }),
                  large.size());
  for (std::size_t i = 0; i < std::min(large.size(), kWorstCells); ++i)
    text += fmt::format("  {:>5.1f} %  {:<48} {:>7.0f} GB/s by {}; the fastest: {}\n", percent(large[i]),
                        describe(*large[i]), gbps(static_cast<double>(large[i]->bytes), large[i]->hone.median_us),
                        large[i]->policy, large[i]->ceiling().by);
  return text;
}

/// Rows of one cell follow each other, the aligned one first.
std::string misaligned_table(const std::vector<Row>& rows) {
  std::vector<std::pair<double, const Row*>> shares;
  const Row* aligned = nullptr;
  for (const Row& row : rows) {
    if (row.offset == 0) aligned = &row;
    else if (aligned != nullptr && row.cell.n == aligned->cell.n)
      shares.emplace_back(aligned->hone.median_us / row.hone.median_us, &row);
  }
  if (shares.empty()) return "";
  std::vector<double> speeds;
  for (const auto& [share, row] : shares) speeds.push_back(share);
  std::sort(shares.begin(), shares.end());
  std::string text =
      fmt::format("\nMisaligned, share of Hone's own aligned speed: {}; slowest:\n", ratio_summary(speeds));
  for (std::size_t i = 0; i < std::min(shares.size(), kWorstCells / 2); ++i)
    text += fmt::format("  {:>5.2f}  {}\n", shares[i].first, describe(*shares[i].second));
  return text;
}

std::string disagreements(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows)
    for (const PeerTiming& peer : row.peers)
      if (!peer.agrees) text += fmt::format("  {}: {} has another result\n", describe(row), peer.peer);
  return text.empty() ? "" : "\nDIFFERENT RESULTS:\n" + text;
}

}  // namespace

std::string headline(const SweepRun& run) {
  return fmt::format("{}, CUDA {}, Hone{}{}, {}\n{}", run.device.name,
                     cuda_version().empty() ? "none" : cuda_version(), run.peers.empty() ? "" : " against ",
                     fmt::join(run.peers, ", "), today(),
                     run.missing_peers.empty() ? "" : run.missing_peers + "\n");
}

std::string ratio_summary(const std::vector<double>& ratios) {
  if (ratios.empty()) return "-";
  const auto behind = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio < kBehind; });
  return fmt::format("{:.2f} (worst {:.2f} of {}{})", geometric_mean(ratios),
                     *std::min_element(ratios.begin(), ratios.end()), ratios.size(),
                     behind == 0 ? "" : fmt::format(", {} behind", behind));
}

std::string row_table(const std::vector<Row>& rows) {
  const std::vector<std::string> peers = names_of_peers(rows);
  std::string text = fmt::format("{:<15}{:<6}{:>11} {:<15}{:>6}{:>10}{:>8}{:>7}", "operation", "dtype", "n", "in",
                                 "offset", "Hone us", "GB/s", "% ceil");
  for (const std::string& peer : peers) text += fmt::format("{:>10}{:>7}", peer + " us", "ratio");
  text += "\n";
  for (const Row& row : rows) {
    text += fmt::format("{:<15}{:<6}{:>11} {:<15}{:>6}{:>10.2f}{:>8.0f}{:>7.1f}", operation_of(row),
                        dtype_of(row), row.cell.n, name(row.cell.setting), row.offset,
                        row.hone.median_us, gbps(static_cast<double>(row.bytes), row.hone.median_us),
                        row.percent_of_ceiling());
    for (const std::string& peer : peers) {
      const auto found =
          std::find_if(row.peers.begin(), row.peers.end(), [&](const PeerTiming& p) { return p.peer == peer; });
      if (found == row.peers.end()) text += fmt::format("{:>10}{:>7}", "-", "-");
      else text += fmt::format("{:>10.2f}{:>7.2f}", found->timing.median_us, row.ratio_to(peer));
    }
    text += "\n";
  }
  return text;
}

std::string summary_tables(const std::vector<Row>& rows, const SweepRun& run) {
  std::string text;
  for (const std::string& peer : names_of_peers(rows)) text += peer_table(rows, peer) + worst_table(rows, peer);
  text += share_table(rows) + misaligned_table(rows) + disagreements(rows);
  text += fmt::format("\n{} of {} cells in {:.0f} s, of which tuning took {:.0f} s\n", run.measured_cells, run.cells,
                      run.total_seconds, run.tuning_seconds);
  if (run.measured_cells < run.cells)
    text += "The time was over before all cells were measured: give more with --time, or select some.\n";
  return text;
}

nlohmann::ordered_json to_json(const std::vector<Row>& rows, const SweepRun& run) {
  nlohmann::ordered_json json = run_json(run.device, run.budget_ms,
                                         {"operation", "dtype", "n", "offset", "context", "company"});
  json["peers"] = run.peers;
  json["tuning_seconds"] = run.tuning_seconds;
  json["total_seconds"] = run.total_seconds;
  json["cells"] = run.cells;
  json["measured_cells"] = run.measured_cells;
  for (const Row& row : rows) {
    nlohmann::ordered_json one{{"operation", operation_of(row)},
                               {"dtype", dtype_of(row)},
                               {"n", row.cell.n},
                               {"offset", row.offset},
                               {"bytes", row.bytes},
                               {"variant", row.policy},
                               {"source", row.source}};
    add_timings(one, row.cell.setting, row.hone, row.peers);
    add_ceiling(one, row.read, row.hone, row.peers);
    json["rows"].push_back(std::move(one));
  }
  return json;
}

}  // namespace hone::benchmarks
