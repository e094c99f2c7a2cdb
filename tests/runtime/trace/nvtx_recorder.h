// The interface between the recorder and its test: the name of a function, and its result.
#pragma once

/// `extern "C" const char* nvtx_recorder_take()`: a line for each range that was opened since the last call, in the
/// order of opening: its domain, how many ranges of its thread were open already, and its message, with tabs between.
/// The text lives until the next call. A last line "open" if a range is open.
inline constexpr const char* kTakeFunction = "nvtx_recorder_take";
using TakeFunction = const char* (*)();
