#include "cache/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

namespace hone::cache {
namespace {

using Word = std::array<std::byte, 8>;

/// Little-endian on every machine, so that a digest means the same everywhere.
Word encode(std::uint64_t value) {
  Word bytes;
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

/// Fields are short and many, so they are collected: XXH3 takes long for each piece that it is given.
struct Digest::State {
  XXH3_state_t xxh;
  std::array<std::byte, 2048> collected;
  std::size_t used = 0;

  State() { XXH3_128bits_reset(&xxh); }

  void flush() {
    XXH3_128bits_update(&xxh, collected.data(), used);
    used = 0;
  }

  /// `type` keeps the number 1 and the eight bytes of its encoding apart.
  void add_field(std::string_view tag, char type, const void* data, std::size_t size) {
    const std::size_t all = tag.size() + size + sizeof type + 2 * sizeof(Word);
    if (all > collected.size() - used) flush();
    const bool is_collected = all <= collected.size();
    const auto put = [&](const void* from, std::size_t count) {
      if (!is_collected) {
        XXH3_128bits_update(&xxh, from, count);
      } else if (count > 0) {
        std::memcpy(collected.data() + used, from, count);
        used += count;
      }
    };
    const Word tag_size = encode(tag.size()), data_size = encode(size);
    put(tag_size.data(), tag_size.size());
    put(tag.data(), tag.size());
    put(&type, sizeof type);
    put(data_size.data(), data_size.size());
    put(data, size);
  }
};

Digest::Digest() : state_(std::make_unique<State>()) {}
Digest::~Digest() = default;

Digest& Digest::add(std::string_view tag, std::string_view value) {
  state_->add_field(tag, 's', value.data(), value.size());
  return *this;
}

Digest& Digest::add(std::string_view tag, std::span<const std::byte> value) {
  state_->add_field(tag, 'b', value.data(), value.size());
  return *this;
}

Digest& Digest::add(std::string_view tag, std::int64_t value) {
  const Word bytes = encode(static_cast<std::uint64_t>(value));
  state_->add_field(tag, 'i', bytes.data(), bytes.size());
  return *this;
}

Digest& Digest::add(std::string_view tag, double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  const Word bytes = encode(std::bit_cast<std::uint64_t>(value + 0.0));  // + 0.0 turns -0 into 0
  state_->add_field(tag, 'd', bytes.data(), bytes.size());
  return *this;
}

std::string Digest::hex() const {
  state_->flush();
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace hone::cache
