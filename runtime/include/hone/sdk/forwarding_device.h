// ForwardingDevice: a device that forwards every method to another device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hone/device.h>

namespace hone {

/// The base class of devices that override few methods of another device, whose ownership they share.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  const DeviceFacts& facts() const override { return inner_->facts(); }
  DeviceLimits limits() override { return inner_->limits(); }
  void set_limits(const DeviceLimits& limits) override { inner_->set_limits(limits); }
  std::string compiler_identity() const override { return inner_->compiler_identity(); }
  Binary compile(const Unit& unit) const override { return inner_->compile(unit); }
  std::size_t parallel_compilations() const override { return inner_->parallel_compilations(); }
  std::unique_ptr<Module> load(const Binary& binary, const std::vector<std::string>& entries) override {
    return inner_->load(binary, entries);
  }
  int resident_blocks(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes) const override {
    return inner_->resident_blocks(kernel, block_threads, dynamic_smem_bytes);
  }
  std::int64_t resident_clusters(const Kernel& kernel, int block_threads, std::size_t dynamic_smem_bytes,
                                 int cluster_blocks) const override {
    return inner_->resident_clusters(kernel, block_threads, dynamic_smem_bytes, cluster_blocks);
  }
  int usable_sms() const override { return inner_->usable_sms(); }
  void* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void deallocate(void* pointer) noexcept override { inner_->deallocate(pointer); }
  std::int64_t free_memory_bytes() const override { return inner_->free_memory_bytes(); }
  void copy_to_device(void* to, const void* from_host, std::size_t bytes, Stream stream) override {
    inner_->copy_to_device(to, from_host, bytes, stream);
  }
  void copy_to_host(void* to_host, const void* from, std::size_t bytes, Stream stream) override {
    inner_->copy_to_host(to_host, from, bytes, stream);
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    inner_->copy_on_device(to, from, bytes, stream);
  }
  void fill_bytes(void* to, int byte_value, std::size_t bytes, Stream stream) override {
    inner_->fill_bytes(to, byte_value, bytes, stream);
  }
  std::vector<std::size_t> first_differences(std::span<const RepeatedBytes> runs, Stream stream) override {
    return inner_->first_differences(runs, stream);
  }
  MemoryKind memory_kind(const void* pointer) const override { return inner_->memory_kind(pointer); }
  std::string memory_owner(const void* pointer) const override { return inner_->memory_owner(pointer); }
  Stream create_stream() override { return inner_->create_stream(); }
  void destroy_stream(Stream stream) noexcept override { inner_->destroy_stream(stream); }
  void synchronize(Stream stream) override { inner_->synchronize(stream); }
  StreamState stream_state(Stream stream) const override { return inner_->stream_state(stream); }
  void launch(const Kernel& kernel, const Launch& launch, Stream stream) override {
    inner_->launch(kernel, launch, stream);
  }
  std::unique_ptr<CapturedWork> capture(Stream stream, const std::function<void()>& work) override {
    return inner_->capture(stream, work);
  }
  void replay(const CapturedWork& work, Stream stream) override { inner_->replay(work, stream); }
  std::unique_ptr<StreamHold> hold(Stream stream) override { return inner_->hold(stream); }
  double time_us(Stream stream, const std::function<void()>& work) override { return inner_->time_us(stream, work); }
  DeviceCondition condition() const override { return inner_->condition(); }
  EnergyReading energy() const override { return inner_->energy(); }

 private:
  std::shared_ptr<Device> inner_;
};

}  // namespace hone
