// The plain reads and copies, on a GPU where there is one.
#include "benchmarks/common/ceilings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace hone::benchmarks {
namespace {

constexpr std::size_t kMostWords = (std::size_t{1} << 18) + 9;

/// Room for some elements more than are copied, so that one that is written too many is seen.
class Arrays {
 public:
  explicit Arrays(const std::shared_ptr<Device>& device)
      : device_(device), in_(device, counted()), out_(device, kMostWords * sizeof(unsigned)) {}

  const void* in() const { return in_.data(); }
  void* out() const { return out_.data(); }

  /// The words of `out` after `copy`, which were 0.
  template <class Copy>
  std::vector<unsigned> after(const Copy& copy) {
    device_->fill_bytes(out(), 0, out_.size_bytes(), nullptr);
    copy();
    std::vector<unsigned> words(kMostWords);
    device_->copy_to_host(words.data(), out(), out_.size_bytes(), nullptr);
    device_->synchronize(nullptr);
    return words;
  }

  static std::vector<unsigned> counted() {
    std::vector<unsigned> words(kMostWords);
    std::iota(words.begin(), words.end(), 1u);
    return words;
  }

 private:
  std::shared_ptr<Device> device_;
  DeviceBuffer in_, out_;
};

/// The counted words, as far as these bytes have whole packs of them.
std::vector<unsigned> copied(std::size_t bytes) {
  std::vector<unsigned> words = Arrays::counted();
  std::fill(words.begin() + static_cast<std::ptrdiff_t>(bytes / kPackBytes * kPackBytes / sizeof(unsigned)),
            words.end(), 0u);
  return words;
}

TEST(Movers, EveryCopyIsRightOnEveryGrid) {
  const auto device = Device::open("auto");
  Arrays arrays(device);
  for (const MoverPolicy& policy : mover_policies(device->facts(), true)) {
    const Mover mover(device, policy);
    EXPECT_GE(mover.resident_blocks(), 1) << policy.describe();
    for (const std::size_t bytes : {0u, 16u, 40u, 16u * 255, 16u * 1025, 16u * 65537}) {
      for (const int blocks : {1, 3, mover.blocks_for(bytes, 0), mover.blocks_for(bytes, 1)}) {
        const std::vector<unsigned> words =
            arrays.after([&] { mover.enqueue(arrays.in(), arrays.out(), bytes, blocks, nullptr); });
        ASSERT_TRUE(words == copied(bytes)) << policy.describe() << ", " << bytes << " bytes, " << blocks << " blocks";
      }
    }
  }
}

TEST(Ceilings, AreChosenOnceForEachNumberOfBytes) {
  const auto device = Device::open("auto");
  const RaceTrack track(device);
  Ceilings ceilings(device, track);
  Arrays arrays(device);
  const void* const inputs[] = {arrays.in()};
  const PlainMove& read = ceilings.fastest(inputs, nullptr, 4096);
  const PlainMove& copy = ceilings.fastest(inputs, arrays.out(), 4096);
  EXPECT_EQ(&read, &ceilings.fastest(inputs, nullptr, 4096));
  EXPECT_NE(&read, &ceilings.fastest(inputs, nullptr, 8192));
  EXPECT_NE(read.name.find("read"), std::string::npos) << read.name;
  EXPECT_NE(copy.name.find("copy"), std::string::npos) << copy.name;
  read.enqueue(arrays.in(), nullptr, nullptr);
  EXPECT_TRUE(arrays.after([&] { copy.enqueue(arrays.in(), arrays.out(), nullptr); }) == copied(4096));
}

}  // namespace
}  // namespace hone::benchmarks
