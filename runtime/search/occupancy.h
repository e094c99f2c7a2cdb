// resident_blocks(): the occupancy question answered from facts alone, for GPUs that are not there.
#pragma once

#include <cstddef>

#include <hone/device_facts.h>
#include <hone/kernel.h>

namespace hone {

/// How many blocks of `block_threads` threads fit on one SM at once; 0 when none does. A pure function. Where the GPU
/// is present, ask Device::resident_blocks() instead, which asks the driver.
///
/// The smallest of four limits: warps, blocks, registers and shared memory per SM, in the units in which the hardware
/// hands them out. Formulas and granularities are those of cuda_occupancy.h of CUDA 13.0 for compute capability 5.0
/// and newer (see also CUDA C++ Programming Guide, "Occupancy Calculator"), with the largest shared-memory carveout
/// and one barrier per block. Limits that are 0 in `facts` (registers or shared memory per SM) do not limit.
int resident_blocks(const DeviceFacts& facts, const Resources& resources, int block_threads,
                    std::size_t dynamic_smem_bytes);

}  // namespace hone
