#include "tuner/text/base64.h"

#include <gmock/gmock.h>

#include <string>

namespace hone::tuner {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

TEST(Base64, IsThatOfTheStandard) {
  const std::vector<std::pair<std::string, std::string>> vectors{// RFC 4648, 10
                                                                 {"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(base64(bytes_of(plain)), encoded);
    EXPECT_EQ(from_base64(encoded), bytes_of(plain));
  }
}

TEST(Base64, EveryByteComesBack) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 259; ++i) {
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
    bytes.push_back(static_cast<std::byte>(i * 7));
  }
}

TEST(Base64, OnlyWhatIsWrittenThatWayIsRead) {
  for (const std::string text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zm9v=", "Z===", "Zm9v\n", "Zm 9", "Zm9-",
                                 "Zg==Zg==", "Zh==", "Zm9=", "\xc3\xa9==", "Zm=v"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hone::tuner
