// The launch's dynamic shared memory.
#pragma once

namespace hone {

extern __shared__ __align__(16) unsigned char dynamic_smem[];

}  // namespace hone
