#include "benchmarks/common/figures.h"

#ifdef HONE_WITH_CUDA_RUNTIME
#include <cuda_runtime_api.h>
#endif
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "benchmarks/common/report.h"

namespace hone::benchmarks {

std::string cuda_version() {
#ifdef HONE_WITH_CUDA_RUNTIME
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
#else
  return "";
#endif
}

nlohmann::ordered_json run_json(const DeviceFacts& device, int budget_ms, const std::vector<std::string>& key) {
  return {{"device", device.name}, {"driver", device.driver},  {"cuda", cuda_version()},
          {"date", today()},       {"budget_ms", budget_ms}, {"key", key},
          {"rows", nlohmann::ordered_json::array()}};
}

double Ceiling::percent(const Timing& hone) const {
  return hone.median_us > 0 ? 100 * us / hone.median_us : std::numeric_limits<double>::quiet_NaN();
}

Ceiling ceiling_of(const PlainTiming& plain, const Timing& hone, const std::vector<PeerTiming>& peers) {
  Ceiling least{std::numeric_limits<double>::quiet_NaN(), ""};
  const auto add = [&](const Timing& timing, const std::string& by) {
    if (timing.median_us > 0 && !(timing.median_us >= least.us)) least = {timing.median_us, by};
  };
  add(plain.timing, plain.name);
  add(hone, "Hone");
  for (const PeerTiming& peer : peers)
    if (peer.agrees) add(peer.timing, peer.peer);
  return least;
}

void add_timings(nlohmann::ordered_json& row, const Setting& setting, const Timing& hone,
                 const std::vector<PeerTiming>& peers) {
  row["context"] = name(setting.context);
  row["company"] = name(setting.company);
  row["hone_us"] = hone.median_us;
  row["hone_spread_us"] = hone.spread_us;
  row["batches"] = hone.batches;
  row["host_share"] = hone.host_share;
  row["peers"] = nlohmann::ordered_json::object();
  for (const PeerTiming& peer : peers)
    row["peers"][peer.peer] = {{"us", peer.timing.median_us},
                               {"spread_us", peer.timing.spread_us},
                               {"host_share", peer.timing.host_share},
                               {"ratio", peer.timing.median_us / hone.median_us},
                               {"agrees", peer.agrees}};
}

void add_ceiling(nlohmann::ordered_json& row, const PlainTiming& plain, const Timing& hone,
                 const std::vector<PeerTiming>& peers) {
  row["plain"] = plain.name;
  row["plain_us"] = plain.timing.median_us;
  const Ceiling ceiling = ceiling_of(plain, hone, peers);
  if (std::isnan(ceiling.us) || !(hone.median_us > 0)) return;
  row["ceiling_us"] = ceiling.us;
  row["ceiling_by"] = ceiling.by;
  row["percent_of_ceiling"] = ceiling.percent(hone);
}

}  // namespace hone::benchmarks
