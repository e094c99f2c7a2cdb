#include "runtime/device/cuda/nccl_library.h"

#include <gmock/gmock.h>
#include <hone/nccl_communicator.h>
#include <stdlib.h>

#include <hone/error.h>

#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

Error failure_of(ncclComm* communicator) {
  try {
    nccl_communicator(communicator);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::not_found, "nothing was thrown"};
}

TEST(NcclVersion, IsSpelledAsPeopleDo) {
  EXPECT_EQ(nccl_version_string(2804), "2.8.4");
  EXPECT_EQ(nccl_version_string(21003), "2.10.3");
  EXPECT_EQ(nccl_version_string(22707), "2.27.7");
}

// One after the other, because a library that was loaded stays.
TEST(NcclLibrary, IsRefusedUntilItIsThereAndNewEnough) {
  auto* const communicator = reinterpret_cast<ncclComm*>(0x1000);  // the fake does not look at it
  setenv("HONE_NCCL", "/nowhere/libnccl.so.2", 1);
  EXPECT_EQ(failure_of(communicator).code(), ErrorCode::unsupported);
  EXPECT_THAT(failure_of(communicator).what(), Names("/nowhere/libnccl.so.2", "HONE_NCCL", "2.10"));

  setenv("HONE_NCCL", HONE_FAKE_NCCL, 1);
  setenv("FAKE_NCCL_VERSION", "2804", 1);
  EXPECT_EQ(failure_of(communicator).code(), ErrorCode::unsupported);
  EXPECT_THAT(failure_of(communicator).what(), Names("2.8.4", "2.10", "too old"));

  setenv("FAKE_NCCL_VERSION", "22707", 1);
  EXPECT_EQ(failure_of(nullptr).code(), ErrorCode::invalid_argument);
  const std::unique_ptr<Communicator> ranks = nccl_communicator(communicator);
  EXPECT_EQ(ranks->name(), "NCCL 2.27.7");
  EXPECT_EQ(ranks->rank(), 2);
  EXPECT_EQ(ranks->ranks(), 4);
  EXPECT_TRUE(ranks->is_asynchronous());

  const std::shared_ptr<Device> host = Device::open("host");
  EXPECT_THAT(ranks->refuse(*host), Names("cuda:1", "host"));
  EXPECT_THROW(ranks->all_gather(*host, nullptr, 16, nullptr), Error);
}

}  // namespace
}  // namespace hone
