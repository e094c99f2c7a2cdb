// Digest: 128-bit XXH3 over tagged fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hone::cache {

/// Hashes a sequence of fields. Each field goes in with its tag and length, so that neighbouring fields cannot run
/// together ("ab","c" against "a","bc"). Guards against damage and mix-ups, not against forgery.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  Digest& add(std::string_view tag, std::string_view value);
  Digest& add(std::string_view tag, std::span<const std::byte> value);
  Digest& add(std::string_view tag, std::int64_t value);
  Digest& add(std::string_view tag, double value);  ///< -0 counts as 0, and all NaNs alike, as they do in SQLite

  /// 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone::cache
