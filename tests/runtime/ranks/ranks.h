// RanksTest: a fixture for tests that all ranks of MPI run together.
#pragma once

#include <gtest/gtest.h>
#include <hone/mpi/communicator.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <hone/all_reduce.h>

#include "tests/runtime/support/device_fixture.h"
#include "tests/support/long_test.h"

namespace hone {

/// Tests of operations, dtypes and sizes are instances, of which the share runs; the others run always.
class RanksTest : public testing::Test {
 protected:
  /// One for all tests of a rank, with a cache file that all ranks share.
  static Session& shared_session();

  void SetUp() override {
    const bool is_instance = testing::UnitTest::GetInstance()->current_test_info()->value_param() != nullptr;
    if (is_instance && !test::is_due()) GTEST_SKIP() << test::kNotInShare;
    session_ = &shared_session();
    device_ = session_->device();
    if (device_->compiler_identity().empty()) GTEST_SKIP() << "there is no compiler for the host";
    communicator_ = std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
  }

  /// Lets rank 0 compile one part of what all ranks will launch and rank 1 the other, at once; then all find it in the
  /// cache.
  template <class Part, class Other>
  void first_on_two_ranks(const Part& part, const Other& other) {
    if (rank() == 0) part();
    if (rank() == std::min(1, ranks() - 1)) other();
    communicator_->exchange(*device_, "");
  }

  int rank() const { return communicator_->rank(); }
  int ranks() const { return communicator_->ranks(); }

  /// The same bytes on all ranks.
  void expect_equal_bits(const void* mine, std::size_t bytes) {
    const std::vector<std::byte> gathered = communicator_->all_gather_host(*device_, mine, bytes);
    for (int r = 1; r < ranks(); ++r)
      EXPECT_EQ(std::memcmp(gathered.data(), gathered.data() + static_cast<std::size_t>(r) * bytes, bytes), 0)
          << "ranks 0 and " << r << " differ";
  }

  DeviceBuffer upload(const void* from, std::size_t bytes) const {
    DeviceBuffer buffer(device_, std::max<std::size_t>(bytes, 1));
    if (bytes > 0) device_->copy_to_device(buffer.data(), from, bytes, nullptr);
    return buffer;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<MpiCommunicator> communicator_;
  Session* session_ = nullptr;
};

}  // namespace hone
