// The source files that are compiled into the library, by folder.
#pragma once

#include <span>

#include <hone/kernel.h>

namespace hone::embedded {

/// Not constexpr: g++ tries to evaluate the constructors of an array of texts, which takes it 4 s for the templates.
inline SourceFile source_file(const char* name, const char* text) { return {name, text}; }

/// kernel_templates/: what every device compiles.
std::span<const SourceFile> kernel_templates();

/// runtime/device/host/prelude/: what the host device puts in front of kernel source.
std::span<const SourceFile> host_prelude();

}  // namespace hone::embedded
