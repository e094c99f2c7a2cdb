// answer(): what a child process of a campaign tells whoever gave it its orders.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace hone::tuner {

/// Writes {kind: body} to standard output, on a line of its own. Ends the process when nobody reads it any more.
void answer(std::string_view kind, nlohmann::json body);

}  // namespace hone::tuner
