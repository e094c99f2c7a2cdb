// CallReport: what `hone reduce`, `hone softmax` and `hone transpose` say of the calls that they made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/session.h>
#include <nlohmann/json.hpp>

#include "tuner/array/input_file.h"
#include "tuner/context/context.h"
#include "tuner/text/table.h"

namespace hone::tuner {

/// How a call was answered, and how fast the next ones like it were.
struct MadeCall {
  std::string policy;  ///< empty: there was nothing to launch
  std::int64_t blocks = 0;
  ChoiceSource source = ChoiceSource::memory;
  bool tuned = false;
  double warm_us = 0;  ///< 0: not timed
  double gbps = 0;     ///< likewise
};

/// Makes the call once and then, where it is timed and launched something, a few times on the hit path. All its work is
/// done when this returns. Throws what the call throws.
MadeCall make_call(Session& session, const Problem& problem, Stream stream, bool is_timed,
                   const std::function<Choice()>& call);

/// A row for each call, as a table for people or as JSON.
class CallReport {
 public:
  using Json = nlohmann::ordered_json;

  /// `input_extent` is what JSON says of the input's size, such as {"shape", …}. Both references must outlive the
  /// report.
  CallReport(const InputFile& input, const Device& device, Json::object_t::value_type input_extent);

  /// The result as a table shows it, and its members in JSON, which follow "op".
  void add(std::string_view op, const std::string& result, const Json& members, const MadeCall& made);

  /// Results stand to the left or to the right of their column.
  void print_text(Align results, const Context& context) const;
  void print_json(const Context& context) const;

 private:
  struct Row {
    std::string op, result;
    MadeCall made;
  };

  const InputFile& input_;
  const Device& device_;
  Json json_;
  std::vector<Row> rows_;
};

}  // namespace hone::tuner
