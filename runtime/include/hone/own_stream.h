// OwnStream: a stream that lives as long as its scope.
#pragma once

#include <hone/device.h>

namespace hone {

/// Created by its device and destroyed with the object, which must not outlive the device. Finish the stream's work
/// first. Throws device_failed.
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
