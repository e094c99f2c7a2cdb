// WithoutGil, WithGil: calls without the GIL, and calls back with it.
#pragma once

#include <unistd.h>

#include <nanobind/nanobind.h>

namespace hone::python {

/// Calls take(), which takes the GIL. While the interpreter ends, Python before 3.14 unwinds the stack of a daemon
/// thread that wants it, which std::terminate() answers in the functions that have called Hone. As in later versions,
/// such a thread waits here instead, until the process has ended.
template <class Take>
auto take_gil(const Take& take) noexcept {
  try {
    return take();
  } catch (...) {  // take() throws nothing itself
    for (;;) pause();
  }
}

class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    take_gil([&] { PyEval_RestoreThread(thread_); });
  }

 private:
  PyThreadState* thread_;
};

class WithGil {
 public:
  WithGil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace hone::python
