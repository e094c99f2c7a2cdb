// print_json(): how every subcommand prints its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tuner/context/context.h"

namespace hone::tuner {

/// To standard output, indented by two blanks. Bytes that are no UTF-8, as file names may have, are replaced.
void print_json(const nlohmann::ordered_json& json, const Context& context);

}  // namespace hone::tuner
