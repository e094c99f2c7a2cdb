#include "bindings/c/status.h"

#include <cstdlib>

namespace hone::c {
namespace {

/// Long enough for a compiler's log; a fixed place, so that failing needs no memory.
thread_local char last_error[16384];

}  // namespace

hone_status fail(hone_status status, const char* message) noexcept {
  std::strncpy(last_error, message, sizeof(last_error) - 1);
  return status;
}

char* copied(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace hone::c

const char* hone_last_error() { return hone::c::last_error; }

const char* hone_status_name(hone_status status) {
  switch (status) {
    case HONE_OK:
      return "HONE_OK";
    case HONE_INVALID_ARGUMENT:
      return "HONE_INVALID_ARGUMENT";
    case HONE_UNSUPPORTED:
      return "HONE_UNSUPPORTED";
    case HONE_NOT_FOUND:
      return "HONE_NOT_FOUND";
    case HONE_COMPILE_FAILED:
      return "HONE_COMPILE_FAILED";
    case HONE_DEVICE_FAILED:
      return "HONE_DEVICE_FAILED";
    case HONE_OUT_OF_MEMORY:
      return "HONE_OUT_OF_MEMORY";
    case HONE_CACHE_FAILED:
      return "HONE_CACHE_FAILED";
    case HONE_IO_FAILED:
      return "HONE_IO_FAILED";
    case HONE_NOT_TUNED:
      return "HONE_NOT_TUNED";
    case HONE_DEVICE_LOST:
      return "HONE_DEVICE_LOST";
    case HONE_INTERNAL:
      return "HONE_INTERNAL";
    default:
      return "unknown status";
  }
}

const char* hone_version() { return HONE_VERSION; }

void hone_free(char* text) { std::free(text); }
