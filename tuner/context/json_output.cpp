#include "tuner/context/json_output.h"

#include <ostream>

#include <nlohmann/json.hpp>

namespace hone::tuner {

void print_json(const nlohmann::ordered_json& json, const Context& context) {
  context.out << json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace hone::tuner
