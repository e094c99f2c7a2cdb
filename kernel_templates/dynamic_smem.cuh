// The launch's dynamic shared memory. It begins with a line, because bulk copies to other places take longer.
#pragma once

namespace hone {

extern __shared__ __align__(128) unsigned char dynamic_smem[];

}  // namespace hone
