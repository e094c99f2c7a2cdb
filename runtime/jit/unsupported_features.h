// unsupported_feature() and large_frame(): what a kernel uses that the host device lacks, from a compiler's log.
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// One line, like "scale.cu:12: textures and surfaces (tex2D) are not supported on the host device: …", for the first
/// error of a log of g++ or clang++ that comes from such a feature; "" when none does.
std::string unsupported_feature(std::string_view log);

/// The same, like "scale.cu:12: …", of the first function whose local variables need more than the stack of a thread.
std::string large_frame(std::string_view log);

/// Kernel source whose lines `#include <…>` of CUDA's headers have become errors that unsupported_feature() knows: a
/// toolkit may have put such headers where the C++ compiler finds them, and they mean nothing to it.
std::string without_cuda_headers(std::string_view source);

}  // namespace hone
