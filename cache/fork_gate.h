// ForkGate: keeps a fork from happening while a cache file is open.
#pragma once

namespace hone::cache {

/// While one lives, fork() in another thread waits. SQLite must not be carried across a fork while a connection is
/// open: the child would hold locked mutexes of threads that it does not have, and believe in file locks that the
/// kernel gave to its parent alone. A file is open for milliseconds, and for as long as a lock is waited for (see
/// Connection).
///
/// One per thread at a time is all that is needed; a thread must not fork while it holds one.
class ForkGate {
 public:
  ForkGate();
  ~ForkGate();
  ForkGate(const ForkGate&) = delete;
  ForkGate& operator=(const ForkGate&) = delete;
};

}  // namespace hone::cache
