// Asynchronous copies to shared memory, by which kernels replace cp.async and cp.async.bulk. They land late, at times
// that the engine chooses, unless HostOptions::copies says otherwise.
#pragma once

namespace hone_host {

/// A copy that is put off reads its first and its last byte here, so that a report of an address without memory has the
/// line that starts the copy.
__forceinline__ void touch_source(const void* from, unsigned bytes) {
  const auto* const source = static_cast<const volatile char*>(from);
  static_cast<void>(source[0]);
  static_cast<void>(source[bytes - 1]);
}

/// Starts a copy of one T, which belongs to the calling lane's open group: it is there once the lane has waited for it.
template <class T> __forceinline__
void start_copy(T* to, const T* from, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  BlockView& block = this_block();
  if (!block.copies_land_late) {
    *to = *from;
    return;
  }
  touch_source(from, sizeof(T));
  block.services->start_copy({to, from, sizeof(T), nullptr, {file, line}});
}

/// The copies that the calling lane has started since its last call become a group.
__forceinline__ void end_copy_group() {
  BlockView& block = this_block();
  if (block.copies_land_late) block.services->end_copy_group();
}

/// Waits for all but the last `left` groups of the calling lane.
__forceinline__ void wait_for_copy_groups(unsigned left) {
  BlockView& block = this_block();
  if (block.copies_land_late) block.services->wait_for_copy_groups(left);
}

/// Starts a copy of a multiple of 16 bytes that adds 1 to `*landed` once it is there, behind a fence.
__forceinline__ void start_bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* landed,
                                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  BlockView& block = this_block();
  if (!block.copies_land_late) {
    // Word by word: what memcpy() does is in no trace.
    for (unsigned i = 0; i < bytes / 4; ++i) static_cast<unsigned*>(to)[i] = static_cast<const unsigned*>(from)[i];
    __threadfence_block(file, line);
    atomicAdd(landed, 1ull, file, line);
    return;
  }
  touch_source(from, bytes);
  block.services->start_copy({to, from, bytes, landed, {file, line}});
}

}  // namespace hone_host
