#include <hone/sdk/gpu_compiler.h>

#include <hone/error.h>

#ifdef HONE_WITH_CUDA
#include "runtime/jit/nvrtc_compiler.h"
#endif

namespace hone {

#ifdef HONE_WITH_CUDA
class GpuCompiler::Impl {
 public:
  std::string identity() const { return nvrtc_.identity(); }
  std::vector<std::string> include_folders(std::string_view header) const { return nvrtc_.include_folders(header); }
  Binary compile(const Unit& unit, std::string_view architecture) const { return nvrtc_.compile(unit, architecture); }

 private:
  NvrtcCompiler nvrtc_{NvrtcSearch::from_environment()};
};
#else
class GpuCompiler::Impl {
 public:
  std::string identity() const { return ""; }
  std::vector<std::string> include_folders(std::string_view) const { return {}; }
  Binary compile(const Unit& unit, std::string_view architecture) const {
    throw Error(ErrorCode::unsupported, "compiling \"" + unit.name + "\" for " + std::string(architecture) +
                                            " needs NVRTC, and this build of Hone has no CUDA support; build it with "
                                            "HONE_CUDA=ON and a CUDA toolkit");
  }
};
#endif

GpuCompiler::GpuCompiler() : impl_(std::make_unique<Impl>()) {}
GpuCompiler::~GpuCompiler() = default;

std::string GpuCompiler::identity() const { return impl_->identity(); }

std::vector<std::string> GpuCompiler::include_folders(std::string_view header) const {
  return impl_->include_folders(header);
}

Binary GpuCompiler::compile(const Unit& unit, std::string_view architecture) const {
  return impl_->compile(unit, architecture);
}

Binary compile_for_gpu(const Unit& unit, std::string_view architecture) {
  return GpuCompiler().compile(unit, architecture);
}

}  // namespace hone
