// Line information in compiled kernels, which HONE_LINE_INFO asks for.
#pragma once

namespace hone {

/// True if HONE_LINE_INFO is on. Line information lets compute-sanitizer and the profilers name source lines and
/// changes no instruction, but makes code more than twice as large. Throws Error(invalid_argument) if it is neither on
/// nor off.
bool line_info_from_environment();

}  // namespace hone
