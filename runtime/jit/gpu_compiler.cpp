#include <hone/gpu_compiler.h>

#include <hone/error.h>

#ifdef HONE_WITH_CUDA
#include "runtime/jit/nvrtc_compiler.h"
#endif

namespace hone {

#ifdef HONE_WITH_CUDA
Binary compile_for_gpu(const Unit& unit, std::string_view architecture) {
  static const NvrtcCompiler compiler(NvrtcSearch::from_environment());
  return compiler.compile(unit, architecture);
}
#else
Binary compile_for_gpu(const Unit& unit, std::string_view architecture) {
  throw Error(ErrorCode::unsupported, "compiling \"" + unit.name + "\" for " + std::string(architecture) +
                                          " needs NVRTC, and this build of Hone has no CUDA support; build it with "
                                          "HONE_CUDA=ON and a CUDA toolkit");
}
#endif

}  // namespace hone
