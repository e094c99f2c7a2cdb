// hone tune shows this: progress while it runs, a summary at its end.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tuner/campaign/campaign.h"
#include "tuner/context/context.h"
#include "tuner/context/status_line.h"
#include "tuner/tune/progress.h"

namespace hone::tuner {

/// Writes progress to standard error: on a terminal a status line that is redrawn in place, and in any case one
/// line for each problem that is finished.
class TuneProgressPrinter final : public CampaignObserver {
 public:
  TuneProgressPrinter(const Context& context, const CampaignOptions& options, bool quiet);

  void planned(const std::vector<CampaignDevice>& devices, std::size_t to_tune, std::size_t kept) override;
  void started(std::size_t lane, const Problem& problem) override;
  void consolidating(std::size_t lane, const Problem& smallest) override;
  void progressed(std::size_t lane, const TuningProgress& progress) override;
  void finished(const CampaignItem& item, std::size_t lane) override;
  void consolidated(const SweepResult& sweep, std::size_t lane) override;
  void warned(const std::string& what) override;

 private:
  void draw();
  std::string on_device(std::size_t lane) const;
  std::chrono::steady_clock::time_point now() const { return context_.environment.now(); }

  const Context& context_;
  const CampaignOptions& options_;
  const bool quiet_;
  std::vector<CampaignDevice> devices_;
  std::optional<CampaignProgress> progress_;
  Throttle throttle_;
  StatusLine status_;
};

/// The table of winners, what the portfolio made of them, why candidates were rejected, and totals.
void print_summary(const CampaignResult& result, std::chrono::milliseconds elapsed, const Context& context);

}  // namespace hone::tuner
