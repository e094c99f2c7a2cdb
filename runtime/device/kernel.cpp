#include <hone/kernel.h>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone {

void Arguments::throw_too_many() {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a launch has at most {} arguments of {} bytes together; pass a pointer to a struct in "
                          "device memory instead",
                          kCapacity, kBytes));
}

void LaunchList::throw_too_many() {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a call consists of at most {} launches; join kernels, or make two families", kCapacity));
}

}  // namespace hone
