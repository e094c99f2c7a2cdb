// Descriptor: an open file of ours that is closed with its scope.
#pragma once

#include <unistd.h>

namespace hone::cache {

/// Owns a file descriptor; a negative number is none. Never of a database file that SQLite may have open: closing that
/// one would drop the locks that the process holds on it.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace hone::cache
