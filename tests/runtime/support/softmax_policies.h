// SoftmaxPolicyTest: tests that launch single policies of the softmax over rows, on a real device.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hone/softmax.h>

#include "runtime/device/host/host_device.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/runtime/support/verify_in_grids.h"

namespace hone {

class SoftmaxPolicyTest : public DeviceTest {
 protected:
  /// The blocks of the host device run at once, one on each of its SMs.
  void use_sms(int count) {
    if (is_cuda()) return;
    HostOptions options = usual_host_options();
    options.sm_count = count;
    device_ = make_host_device(options);
  }

  /// Runs a policy on all that winners are verified on.
  void verify(const Problem& problem, const std::string& policy_text) {
    const std::optional<Policy> policy = problem.family->space().parse(policy_text);
    ASSERT_TRUE(policy) << policy_text;
    ASSERT_EQ(problem.family->is_valid(problem, *policy, device_->facts()).text(), "") << to_string(problem);
    expect_policies_right(device_, problem, {*policy}, {1, 3, 64, 4096});  // a wave and several; rows apart
  }
  void verify_reproducible(SoftmaxSpec spec, const SoftmaxShape& shape, const std::string& policy,
                           bool is_log = false) {
    spec.numerics = Numerics::reproducible;
    verify(is_log ? log_softmax_problem(spec, shape) : softmax_problem(spec, shape), policy);
  }

  /// Expects what a policy makes of rows in place, by so many blocks, to be what two kernels make of them.
  template <class T>
  void expect_bits_of_two_kernels(const Problem& problem, const std::vector<T>& in, const std::string& policy_text,
                                  std::int64_t blocks) {
    const auto results = results_of(problem, in, policy_text, blocks);
    const auto read_twice = results_of(
        problem, in, "scope=grid combine=second_kernel block_threads=128 packs_per_thread=4 min_blocks=unset", 2);
    const auto first = std::mismatch(results.begin(), results.end(), read_twice.begin()).first;
    EXPECT_EQ(first, results.end()) << "element "
                                    << (first - results.begin()) / static_cast<std::int64_t>(sizeof(T)) << " of "
                                    << to_string(problem);
  }

  /// The bytes of the rows in place of which a policy's results are.
  template <class T>
  std::vector<std::byte> results_of(const Problem& problem, const std::vector<T>& in, const std::string& policy_text,
                                    std::int64_t blocks) {
    const Policy policy = *problem.family->space().parse(policy_text);
    const Unit unit = unit_of(problem, policy);
    const auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const LoadedCandidate loaded{{policy, {blocks}}, load_policy(*device_, problem, policy, unit, binary).module};
    const auto rows = upload(in);
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    loaded.enqueue(*device_, problem, std::array<void*, 2>{rows.data, rows.data}, workspace.data(), nullptr);
    std::vector<std::byte> bytes(in.size() * sizeof(T));
    device_->copy_to_host(bytes.data(), rows.data, bytes.size(), nullptr);
    device_->synchronize(nullptr);
    return bytes;
  }
};

}  // namespace hone
