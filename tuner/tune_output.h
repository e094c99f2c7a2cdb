// What hone tune shows: progress while it runs, a summary at its end.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>

#include <hone/device_facts.h>

#include "tuner/campaign.h"
#include "tuner/command.h"
#include "tuner/progress.h"

namespace hone::tuner {

/// "sum f32 2^20", with the alignment where it is not the widest.
std::string problem_label(const Problem& problem);

/// Writes progress to standard error: on a terminal a status line that is redrawn in place, and in any case one
/// line for each problem that is finished.
class TuneProgressPrinter final : public CampaignObserver {
 public:
  TuneProgressPrinter(const Context& context, const DeviceFacts& facts, const CampaignOptions& options, bool quiet);
  ~TuneProgressPrinter() override;
  TuneProgressPrinter(const TuneProgressPrinter&) = delete;
  TuneProgressPrinter& operator=(const TuneProgressPrinter&) = delete;

  void planned(std::size_t to_tune, std::size_t kept) override;
  void started(const Problem& problem) override;
  void progressed(const TuningProgress& progress) override;
  void finished(const CampaignItem& item) override;

 private:
  void draw();
  void erase();
  std::chrono::steady_clock::time_point now() const { return context_.environment.now(); }

  const Context& context_;
  const DeviceFacts& facts_;
  const CampaignOptions& options_;
  const bool quiet_;
  std::optional<CampaignProgress> progress_;
  Throttle throttle_;
  bool drawn_ = false;
};

/// The table of winners and a line of totals.
void print_summary(const CampaignResult& result, const DeviceFacts& facts, std::chrono::milliseconds elapsed,
                   const Context& context);

}  // namespace hone::tuner
