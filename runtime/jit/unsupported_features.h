// unsupported_feature(): what of CUDA a kernel uses that the host device does not have, from a compiler's log.
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// One line, like "scale.cu:12: textures and surfaces (tex2D) are not supported on the host device: …", for the first
/// error of a log of g++ or clang++ that comes from such a feature; "" when none does.
std::string unsupported_feature(std::string_view log);

}  // namespace hone
