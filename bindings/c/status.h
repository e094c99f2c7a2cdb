// How exceptions become statuses, and how structs of another version are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include <fmt/core.h>

#include <hone/c.h>
#include <hone/error.h>

namespace hone::c {

/// Remembers the message for hone_last_error() of this thread. Returns `status`.
hone_status fail(hone_status status, const char* message) noexcept;

/// Runs `work`; what it throws becomes a status and a message.
template <class Work>
hone_status guarded(const Work& work) noexcept {
  try {
    work();
    return HONE_OK;
  } catch (const Error& error) {
    static_assert(static_cast<int>(ErrorCode::invalid_argument) + 1 == HONE_INVALID_ARGUMENT &&
                  static_cast<int>(ErrorCode::device_lost) + 1 == HONE_DEVICE_LOST);
    return fail(static_cast<hone_status>(error.code()) + 1, error.what());
  } catch (const std::bad_alloc&) {
    return fail(HONE_OUT_OF_MEMORY, "the host has too little free memory");
  } catch (const std::exception& error) {
    return fail(HONE_INTERNAL, error.what());
  } catch (...) {
    return fail(HONE_INTERNAL, "an exception of unknown type");
  }
}

/// Throws invalid_argument where `pointer` is null.
template <class T>
T& required(T* pointer, const char* what) {
  if (pointer == nullptr) throw Error(ErrorCode::invalid_argument, fmt::format("{} is NULL", what));
  return *pointer;
}

/// Writes `defaults` to a caller's struct of `size` bytes, which may be of an older version.
template <class Struct>
hone_status init(Struct* to, std::size_t size, Struct defaults, const char* name) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct>);
  return guarded([&] {
    required(to, name);
    if (size < sizeof(std::size_t) || size > sizeof(Struct))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a {} of {} bytes: this library's has {}; pass sizeof of the header that belongs to it",
                              name, size, sizeof(Struct)));
    defaults.size = size;
    std::memcpy(to, &defaults, size);
  });
}

/// The caller's struct; what an older one lacks has the value of `defaults`. A later version may use `reserved`, so
/// nothing but 0 is taken there.
template <class Struct>
Struct read(const Struct* from, const Struct& defaults, const char* name) {
  const std::size_t size = required(from, name).size;
  if (size < sizeof(std::size_t) || size > sizeof(Struct))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a {0} whose size is {1}, where this library's has {2}: call {0}_init() first", name, size,
                            sizeof(Struct)));
  Struct result = defaults;
  std::memcpy(&result, from, size);
  if constexpr (requires { result.reserved; })
    if (result.reserved != 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("reserved of {} is {}: give 0, as {}_init() does", name, result.reserved, name));
  return result;
}

/// Throws invalid_argument where `value` is neither 0 nor 1.
inline bool flag_of(std::int32_t value, const char* what) {
  if (value != 0 && value != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}: give 0 or 1", what, value));
  return value == 1;
}

/// A copy that the caller frees with hone_free().
char* copied(const std::string& text);

}  // namespace hone::c
