#include <hone/communicator.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/dispatch/gather_buffers.h"

namespace hone {
namespace {

/// A text, or its beginning, as it is sent first: most texts need no second message.
struct ShortText {
  static constexpr std::size_t kMostBytes = 248;
  std::uint64_t bytes = 0;
  char text[kMostBytes] = {};
};

}  // namespace

Communicator::Communicator(CommunicatorOptions options)
    : options_(options), buffers_(std::make_unique<GatherBuffers>()) {}
Communicator::~Communicator() = default;

std::vector<std::string> Communicator::exchange(Device& device, std::string_view mine) {
  ShortText first{.bytes = mine.size()};
  std::memcpy(first.text, mine.data(), std::min(mine.size(), ShortText::kMostBytes));
  const std::vector<std::byte> received = all_gather_host(device, &first, sizeof(first));
  std::vector<ShortText> firsts(static_cast<std::size_t>(ranks()));
  std::memcpy(firsts.data(), received.data(), received.size());

  std::size_t longest = 0;
  for (const ShortText& text : firsts) longest = std::max<std::size_t>(longest, text.bytes);
  std::vector<std::byte> whole;
  if (longest > ShortText::kMostBytes) {
    std::string padded(mine);
    padded.resize(longest);
    whole = all_gather_host(device, padded.data(), longest);
  }
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < firsts.size(); ++r) {
    const char* const text = whole.empty() ? firsts[r].text : reinterpret_cast<const char*>(whole.data()) + r * longest;
    texts.emplace_back(text, firsts[r].bytes);
  }
  return texts;
}

}  // namespace hone
