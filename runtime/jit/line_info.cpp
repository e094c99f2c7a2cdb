#include "runtime/jit/line_info.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <hone/error.h>

namespace hone {

bool line_info_from_environment() {
  const char* const value = ::secure_getenv("HONE_LINE_INFO");
  const std::string_view text = value ? value : "";
  if (!text.empty() && text != "on" && text != "off")
    throw Error(ErrorCode::invalid_argument, fmt::format("HONE_LINE_INFO is '{}'; it can be off or on", text));
  return text == "on";
}

}  // namespace hone
