// The part of DLPack's binary interface (1.3) that Hone uses: https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>

namespace hone::python {

enum DLDeviceType : std::int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13 };
enum DLDataTypeCode : std::uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
  kDLFloat8E4M3 = 10
};

struct DLVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DLDevice {
  DLDeviceType device_type;
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // null: contiguous
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

inline constexpr std::uint64_t kDLReadOnly = 1;

struct DLManagedTensorVersioned {
  DLVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

/// The C exchange interface, which a type offers as the capsule `__dlpack_c_exchange_api__`. Functions return 0, or −1
/// with a Python exception set.
struct DLExchange {
  DLVersion version;
  DLExchange* previous;
  int (*allocate)(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, DLManagedTensorVersioned** out);
  int (*object_from_managed)(DLManagedTensorVersioned* tensor, void** object);
  int (*tensor_from_object)(void* object, DLTensor* out);  // may be null; `out` is valid while the object is
  int (*current_stream)(DLDeviceType type, std::int32_t device, void** stream);
};

}  // namespace hone::python
