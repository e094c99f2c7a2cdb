// Devices, their memory and their streams.
#include <nlohmann/json.hpp>

#include "bindings/c/handles.h"
#include "bindings/c/status.h"

using namespace hone;
using hone::c::copied, hone::c::guarded, hone::c::required, hone::c::stream_of;
using Json = nlohmann::ordered_json;

hone_status hone_device_open(const char* name, hone_device** device) {
  return guarded([&] { required(device, "device") = new hone_device{Device::open(&required(name, "name"))}; });
}

void hone_device_close(hone_device* device) { delete device; }

const char* hone_device_name(const hone_device* device) {
  return device == nullptr ? nullptr : device->device->name().data();
}

hone_status hone_devices(char** json) {
  return guarded([&] { required(json, "json") = copied(Json(device_names()).dump()); });
}

hone_status hone_device_facts(const hone_device* device, char** json) {
  return guarded([&] {
    const DeviceFacts& facts = required(device, "device").device->facts();
    required(json, "json") = copied(Json{
        {"kind", facts.kind},
        {"name", facts.name},
        {"architecture", facts.architecture},
        {"driver", facts.driver},
        {"compute_capability", facts.compute_capability},
        {"sm_count", facts.sm_count},
        {"max_threads_per_sm", facts.max_threads_per_sm},
        {"max_blocks_per_sm", facts.max_blocks_per_sm},
        {"registers_per_sm", facts.registers_per_sm},
        {"smem_bytes_per_sm", facts.smem_bytes_per_sm},
        {"smem_bytes_per_block_optin", facts.smem_bytes_per_block_optin},
        {"l2_bytes", facts.l2_bytes},
        {"memory_bytes", facts.memory_bytes},
        {"peak_bandwidth_gbps", peak_bandwidth_gbps(facts)},
    }
                                        .dump());
  });
}

hone_status hone_allocate(hone_device* device, size_t bytes, void** pointer) {
  return guarded([&] { required(pointer, "pointer") = required(device, "device").device->allocate(bytes); });
}

void hone_deallocate(hone_device* device, void* pointer) {
  if (device != nullptr && pointer != nullptr) device->device->deallocate(pointer);
}

hone_status hone_copy_to_device(hone_device* device, void* to, const void* from_host, size_t bytes, void* stream) {
  return guarded([&] {
    Device& known = *required(device, "device").device;
    if (bytes == 0) return;
    required(static_cast<char*>(to), "to");
    required(static_cast<const char*>(from_host), "from_host");
    known.copy_to_device(to, from_host, bytes, stream_of(stream));
  });
}

hone_status hone_copy_to_host(hone_device* device, void* to_host, const void* from, size_t bytes, void* stream) {
  return guarded([&] {
    Device& known = *required(device, "device").device;
    if (bytes == 0) return;
    required(static_cast<char*>(to_host), "to_host");
    required(static_cast<const char*>(from), "from");
    known.copy_to_host(to_host, from, bytes, stream_of(stream));
  });
}

hone_status hone_stream_create(hone_device* device, void** stream) {
  return guarded([&] { required(stream, "stream") = required(device, "device").device->create_stream(); });
}

void hone_stream_destroy(hone_device* device, void* stream) {
  if (device != nullptr) device->device->destroy_stream(stream_of(stream));
}

hone_status hone_synchronize(hone_device* device, void* stream) {
  return guarded([&] { required(device, "device").device->synchronize(stream_of(stream)); });
}
