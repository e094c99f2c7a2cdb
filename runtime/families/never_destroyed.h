// never_destroyed(): makes an object that lasts until the process ends.
#pragma once

#include <utility>

namespace hone {

/// For static references in functions. A Session that the program keeps in a static object may tune and launch after
/// main(), when static objects that were made later than the Session are gone.
template <class T, class... Arguments>
T& never_destroyed(Arguments&&... arguments) {
  return *new T(std::forward<Arguments>(arguments)...);
}

template <class T>
T& never_destroyed(T&& value) {
  return *new T(std::move(value));
}

}  // namespace hone
