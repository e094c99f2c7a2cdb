// A winner by energy: another one than by time where the power says so, and what is recorded of it. Read from a library
// that stands in for NVML.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <hone/error.h>
#include <hone/tuning.h>

#include "runtime/device/nvml/nvml_monitor.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class EnergyTest : public testing::Test {
 protected:
  EnergyTest() {
    setenv("HONE_NVML", HONE_FAKE_NVML, 1);
    monitor_ = std::make_unique<NvmlMonitor>("fake");
    library_ = dlopen(HONE_FAKE_NVML, RTLD_NOW);
    set_watts_ = reinterpret_cast<void (*)(double)>(dlsym(library_, "fake_nvml_set_watts"));
    device_->read_energy = [&] { return monitor_->energy(); };
    device_->script = [&](std::string_view source) { return FakeKernel{.us = us_of(std::string(source))}; };
  }
  ~EnergyTest() override {
    monitor_.reset();
    dlclose(library_);
    unsetenv("HONE_NVML");
  }

  double us_of(const std::string& source) const {
    for (const auto& [threads, us] : us_)
      if (source.find("threads=" + std::to_string(threads) + " ") != std::string::npos) return us;
    return 1000;
  }

  /// Every policy takes as many watts as `watts` says of its threads.
  Tuning tune(std::map<int, double> watts) {
    TuningOptions options{.budget = std::chrono::seconds(20), .objective = Objective::energy, .measure_all = true};
    options.on_run = [this, watts](const Candidate& candidate) { set_watts_(watts.at(candidate.policy[0])); };
    return hone::tune(device_, family_.problem(5000), options);
  }

  const Trial& trial_of(const Tuning& tuning, int threads) const {
    for (const Trial& trial : tuning.trials)
      if (trial.candidate.policy[0] == threads && trial.samples > 0) return trial;
    throw Error(ErrorCode::not_found, "no such trial");
  }

  TotalFamily family_{
      {.space = ParameterSpace{{{"threads", {64, 128, 256}}, {"work", {4}}, {"finish", {0}, {"alone"}}}},
       .alone_is_one_block = true}};
  std::map<int, double> us_{{64, 100}, {128, 110}, {256, 200}};
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  std::unique_ptr<NvmlMonitor> monitor_;
  void* library_ = nullptr;
  void (*set_watts_)(double) = nullptr;
};

TEST_F(EnergyTest, TheSlowerOneWinsThatTakesLessPower) {
  const Tuning tuning = tune({{64, 400}, {128, 150}, {256, 10}});
  ASSERT_TRUE(tuning.winner);
  const Trial& winner = tuning.trials[*tuning.winner];
  EXPECT_EQ(winner.candidate.policy[0], 128);
  EXPECT_GT(winner.energy_uj, 0);
  EXPECT_LT(winner.energy_uj + winner.energy_spread_uj, trial_of(tuning, 64).energy_uj);
  EXPECT_EQ(trial_of(tuning, 256).energy_uj, 0) << "twice as slow as the fastest: not worth measuring";
  EXPECT_EQ(tuning.objective, Objective::energy);
  EXPECT_EQ(tuning.power_limit_w, 350);
  EXPECT_FALSE(tuning.budget_spent) << "measuring energy is no part of the budget";
}

TEST_F(EnergyTest, WithoutACounterThereIsAClearRefusal) {
  device_->read_energy = [] { return NvmlMonitor("fake").energy(); };
  const auto refusal = [&]() -> std::string {
    try {
      tune({{64, 1}, {128, 1}, {256, 1}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return error.what();
    }
    return "none";
  };
  setenv("HONE_NVML", "/nowhere/libnvidia-ml.so", 1);
  EXPECT_THAT(refusal(), Names("energy", "fake", "/nowhere/libnvidia-ml.so", "time"));
  setenv("HONE_NVML", "libm.so.6", 1);
  EXPECT_THAT(refusal(), Names("libm.so.6", "NVML"));
  device_->read_energy = [] { return EnergyReading{.joules = 5}; };
  EXPECT_THAT(refusal(), Names("counter", "moved"));
  EXPECT_EQ(device_->live_allocations(), 0u);
}

}  // namespace
}  // namespace hone
