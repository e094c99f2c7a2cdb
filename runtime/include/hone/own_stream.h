// OwnStream: owns a stream.
#pragma once

#include <hone/device.h>

namespace hone {

/// Creates a stream of a device, and destroys it with the object. The object must not outlive the device, and the work
/// of the stream must be done when it is destroyed. The constructor throws Error(device_failed).
class OwnStream {
 public:
  explicit OwnStream(Device& device) : device_(device), stream_(device.create_stream()) {}
  ~OwnStream() { device_.destroy_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  Stream get() const { return stream_; }

 private:
  Device& device_;
  Stream stream_;
};

}  // namespace hone
