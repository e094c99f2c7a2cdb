#include "benchmarks/common/figures.h"

#ifdef HONE_WITH_CUDA_RUNTIME
#include <cuda_runtime_api.h>
#endif
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

}  // namespace hone::benchmarks
