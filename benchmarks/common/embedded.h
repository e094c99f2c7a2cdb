// The kernel files of the benchmarks, compiled into the programs.
#pragma once

#include <span>

#include <hone/kernel.h>

namespace hone::embedded {

/// common/: move_all.cu and move_in_bulk.cu.
std::span<const SourceFile> benchmark_kernels();

/// accuracy/: fill.cu.
std::span<const SourceFile> accuracy_kernels();

/// ladder/: one file a step.
std::span<const SourceFile> ladder_kernels();

}  // namespace hone::embedded
