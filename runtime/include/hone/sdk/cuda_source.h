// cuda_source(): a candidate as plain CUDA C++, for programs that do not link Hone.
#pragma once

#include <string>
#include <string_view>

#include <hone/candidate.h>
#include <hone/problem.h>

namespace hone {

/// A .cu file that includes nothing but CUDA's own headers: `comment`, the kernels of the candidate's policy, and the
/// function cudaError_t launch_NAME(…, cudaStream_t), which enqueues what Session::launch() would.
///
/// For a TunableKernel, the function takes the arguments of a call and its extents, and is right for every size. For
/// any other family it takes the pointers of `problem`, and is for its extents, pitches and scalars alone; a family
/// that needs a workspace takes that, too. Throws Error(invalid_argument) for a refused problem, and for one of a
/// built-in family whose arrays are aligned to less than kMaxAlignment, since what a launch then passes depends on
/// addresses.
std::string cuda_source(const Problem& problem, const Candidate& candidate, std::string_view comment);

/// Throws what cuda_source() would, whatever the candidate.
void require_cuda_source(const Problem& problem);

}  // namespace hone
