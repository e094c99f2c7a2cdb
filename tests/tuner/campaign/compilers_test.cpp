#include "tuner/campaign/compilers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <hone/error.h>
#include <hone/sdk/forwarding_device.h>
#include <hone/sdk/gpu_compiler.h>

#include "tests/support/names.h"
#include "tests/tuner/support.h"

namespace hone::tuner {
namespace {

using test::Names;

Unit unit(int number) {
  return {.name = "unit " + std::to_string(number),
          .source = "#include \"value.cuh\"\nextern \"C\" __global__ void f(int* out) { *out = value() + " +
                    std::to_string(number) + "; }\n",
          .headers = {{"value.cuh", "__device__ int value() { return " + std::to_string(number / 2) + "; }\n"}},
          .entries = {"f"}};
}

/// The code, or the error: what a machine without NVRTC has to say is the same in every process, too.
std::string outcome_of(const std::function<Binary()>& compile) {
  try {
    const Binary binary = compile();
    return binary.format + binary.architecture +
           std::string(reinterpret_cast<const char*>(binary.code.data()), binary.code.size());
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + error.what();
  }
}

TEST(Compilers, CompileWhatOneProcessWouldCompile) {
  Compilers compilers({HONE_COMMAND, std::string(kCompilerCommand)}, 2);
  std::vector<std::string> outcomes(8);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&, i] {
      outcomes[i] = outcome_of([&] { return compilers.compile(unit(static_cast<int>(i)), "sm_90"); });
    });
  threads.clear();
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(outcomes[i], outcome_of([&] { return compile_for_gpu(unit(static_cast<int>(i)), "sm_90"); })) << i;
}

TEST(Compilers, PassErrorsOnAndGoOn) {
  Compilers compilers({HONE_COMMAND, std::string(kCompilerCommand)}, 1);
  Unit broken = unit(1);
  broken.source = "no kernel";
  const auto here = [](const Unit& each) { return outcome_of([&] { return compile_for_gpu(each, "sm_90"); }); };
  const auto there = [&](const Unit& each) { return outcome_of([&] { return compilers.compile(each, "sm_90"); }); };
  EXPECT_EQ(there(broken), here(broken));
  EXPECT_EQ(there(unit(2)), here(unit(2)));
  EXPECT_EQ(outcome_of([&] { return compilers.compile(unit(2), "sm_1"); }),
            outcome_of([&] { return compile_for_gpu(unit(2), "sm_1"); }));
}

TEST(Compilers, AUnitIsTriedOnceMoreWhenItsProcessDies) {
  const testing::TemporaryFolder folder;
  const std::string died = (folder / "died").string();
  Compilers compilers({"/bin/sh", "-c", "[ -e " + died + " ] || { touch " + died + "; exit 1; }; exec " + HONE_COMMAND +
                                            " " + std::string(kCompilerCommand)},
                      1);
  EXPECT_EQ(outcome_of([&] { return compilers.compile(unit(1), "sm_90"); }),
            outcome_of([&] { return compile_for_gpu(unit(1), "sm_90"); }));
  EXPECT_TRUE(std::filesystem::exists(died));
}

TEST(Compilers, AProcessThatDiesFailsItsUnitAlone) {
  Compilers compilers({"/bin/sh", "-c", "exit 3"}, 1);
  for (int i = 0; i < 3; ++i) {
    const std::string outcome = outcome_of([&] { return compilers.compile(unit(i), "sm_90"); });
    EXPECT_THAT(outcome, Names("\"unit " + std::to_string(i) + "\"", "code 3"));
  }
}

/// A GPU, as far as compiling goes.
class CompilingDevice final : public ForwardingDevice {
 public:
  CompilingDevice() : ForwardingDevice(Device::open("host")), facts_(ForwardingDevice::facts()) {
    facts_.kind = "cuda";
  }
  const DeviceFacts& facts() const override { return facts_; }
  Binary compile(const Unit&) const override { return {.format = "here", .architecture = "", .code = {}}; }

 private:
  DeviceFacts facts_;
};

TEST(CompilingElsewhere, IsForGpusOnMachinesWithManyCores) {
  const std::vector<std::string> command{"/bin/sh", "-c", "exit 3"};
  const auto device = std::make_shared<CompilingDevice>();
  EXPECT_EQ(compiling_elsewhere(device, {}, 64), device);
  EXPECT_EQ(compiling_elsewhere(device, command, 4), device);
  const std::shared_ptr<Device> host = Device::open("host");
  EXPECT_EQ(compiling_elsewhere(host, command, 64), host);
  const std::shared_ptr<Device> elsewhere = compiling_elsewhere(device, command, 64);
  EXPECT_THAT(outcome_of([&] { return elsewhere->compile(unit(1)); }), Names("ended", "3"));
}

TEST(CompilingElsewhere, IsDoneHereWhereNoProcessCanBeStarted) {
  const auto device = compiling_elsewhere(std::make_shared<CompilingDevice>(), {"/no/such/program"}, 64);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(device->compile(unit(i)).format, "here");
}

}  // namespace
}  // namespace hone::tuner
