#include "tuner/array/call_report.h"

#include <fmt/core.h>

#include <ostream>
#include <utility>

#include <hone/kernel_family.h>

#include "tuner/array/warm_call.h"
#include "tuner/context/json_output.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"

namespace hone::tuner {

MadeCall make_call(Session& session, const Problem& problem, Stream stream, bool is_timed,
                   const std::function<Choice()>& call) {
  MadeCall made;
  const Choice choice = call();
  session.device()->synchronize(stream);
  if (choice.winner == nullptr) return made;
  made.policy = problem.family->space().to_string(choice.winner->candidate.policy);
  made.blocks = choice.winner->candidate.geometry.max_blocks;
  made.source = choice.source;
  made.tuned = choice.winner->tuned;
  if (!is_timed) return made;
  made.warm_us = time_warm_call(*session.device(), stream, [&] { call(); });
  made.gbps = bandwidth_gbps(problem.family->bytes_moved(problem), made.warm_us);
  return made;
}

CallReport::CallReport(const InputFile& input, const Device& device, Json::object_t::value_type input_extent)
    : input_(input),
      device_(device),
      json_{{"file", input.path.string()},
            {"dtype", info(input.dtype).name},
            {input_extent.first, std::move(input_extent.second)},
            {"device", device.name()},
            {"device_name", device.facts().name},
            {"peak_bandwidth_gbps", peak_bandwidth_gbps(device.facts())},
            {"results", Json::array()}} {}

void CallReport::add(std::string_view op, const std::string& result, const Json& members, const MadeCall& made) {
  Json row{{"op", op}};
  row.update(members);
  row.update({{"policy", made.policy.empty() ? Json(nullptr) : Json(made.policy)},
              {"max_blocks", made.blocks},
              {"source", name(made.source)},
              {"tuned", made.tuned},
              {"warm_us", made.warm_us > 0 ? Json(made.warm_us) : Json(nullptr)},
              {"gbps", made.gbps > 0 ? Json(made.gbps) : Json(nullptr)}});
  json_["results"].push_back(std::move(row));
  rows_.push_back({std::string(op), result, made});
}

void CallReport::print_text(Align results, const Context& context) const {
  context.out << fmt::format("{}: {} of {}, {} ({})\n", printable(input_.path.string()),
                             count_text(input_.elements, "element"), info(input_.dtype).name,
                             format_bytes(input_.size_bytes()), input_.layout);
  context.out << fmt::format("{}: {}\n\n", device_.name(), printable(device_.facts().name));
  Table table({{"op"},
               {"result", results},
               {"candidate", Align::left, 2},
               {"blocks", Align::right, 3},
               {"from"},
               {"µs", Align::right, 0, true},
               {"GB/s", Align::right, 0, true},
               {"of peak", Align::right, 1, true}});
  for (const auto& [op, result, made] : rows_) {
    const bool was_launched = !made.policy.empty();
    table.add_row({op, result, was_launched ? short_policy(made.policy) : std::string(kUnknown),
                   was_launched ? blocks_cell(made.blocks) : std::string(kUnknown),
                   was_launched ? source_text(made.source, made.tuned) : "nothing to do", us_text(made.warm_us),
                   gbps_text(made.gbps), share_text(made.gbps, peak_bandwidth_gbps(device_.facts()))});
  }
  table.print(context.out, context.environment.out_columns());
}

void CallReport::print_json(const Context& context) const {
  tuner::print_json(json_, context);
}

}  // namespace hone::tuner
