#include "runtime/families/reduce/reduce_verifier.h"

#include <hone/reduce_spec.h>

#include "runtime/families/reduce/reduce_reference.h"

namespace hone {

std::span<const std::string_view> ReduceVerifier::input_kinds(const Problem& problem) const {
  return reduce_reference::input_kinds(reduce_spec_of(problem));
}

std::vector<std::byte> ReduceVerifier::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  return reduce_reference::input_pattern(reduce_spec_of(problem), buffer, problem.extents[0], kind);
}

std::string ReduceVerifier::verify(const Problem& problem, const Candidate& candidate,
                                   std::span<const std::vector<std::byte>> patterns,
                                   std::span<const std::vector<std::byte>> outputs) const {
  return reduce_reference::verify(reduce_spec_of(problem), problem.extents[0],
                                  family_.longest_chain(problem, candidate), patterns, outputs[0]);
}

}  // namespace hone
