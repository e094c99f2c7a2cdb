#include "runtime/device/host/host_module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <hone/error.h>

#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::device_failed, "the host device cannot load a binary: " + what);
}

/// A path to a file descriptor that no library in the process was opened by: dlopen takes an equal path for the same
/// library, and descriptors are reused. Repeated slashes and dots mean nothing to the kernel and spell a serial number.
std::string unique_path(int descriptor) {
  static std::atomic<std::uint64_t> serial{0};
  std::string path = "/proc/self/fd/";
  for (std::uint64_t rest = ++serial; rest != 0; rest /= 2) path += rest % 2 != 0 ? "./" : ".//";
  return path + std::to_string(descriptor);
}

void write_all(int descriptor, const std::vector<std::byte>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(descriptor, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(fmt::format("writing {} bytes to memory: {}", bytes.size(), std::strerror(errno)));
    done += static_cast<std::size_t>(written);
  }
}

struct Segments {
  ElfW(Addr) load_address;
  std::size_t tls_bytes = 0;
  CodeRange code;
};

int find_segments(dl_phdr_info* library, std::size_t, void* data) {
  auto& wanted = *static_cast<Segments*>(data);
  if (library->dlpi_addr != wanted.load_address) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type == PT_TLS) wanted.tls_bytes = segment.p_memsz;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      wanted.code = {wanted.load_address + segment.p_vaddr, segment.p_memsz, wanted.load_address};
  }
  return 1;
}

}  // namespace

/// A dlopen handle with its memory file.
class HostModule::Library {
 public:
  explicit Library(const std::vector<std::byte>& code) : descriptor_(memfd_create("hone_kernel", MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail(fmt::format("memfd_create: {}", std::strerror(errno)));
    try {
      // glibc maps what the headers say without comparing with the file's size, and a cut file ends in SIGBUS.
      if (code.size() < sizeof(ElfW(Ehdr)) || std::memcmp(code.data(), ELFMAG, SELFMAG) != 0) {
        fail(fmt::format("{} bytes that are not an ELF file", code.size()));
      }
      check_segments(code);
      write_all(descriptor_, code);
      handle_ = dlopen(unique_path(descriptor_).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ == nullptr) fail(dlerror());
    } catch (...) {
      close(descriptor_);
      throw;
    }
    // Sanitizers read line numbers through the path; otherwise a module costs no descriptor.
    if (!HONE_ASAN && !HONE_TSAN) {
      close(descriptor_);
      descriptor_ = -1;
    }
  }
  ~Library() {
    // ThreadSanitizer goes on after a report and would look up later addresses in what was here before.
    if (!HONE_TSAN) dlclose(handle_);
    if (descriptor_ >= 0) close(descriptor_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  void* symbol(const char* name) const { return dlsym(handle_, name); }
  Segments segments() const {
    link_map* map = nullptr;
    if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) fail(dlerror());
    Segments segments{map->l_addr, 0, {}};
    dl_iterate_phdr(find_segments, &segments);
    return segments;
  }

 private:
  static void check_segments(const std::vector<std::byte>& code) {
    ElfW(Ehdr) header;
    std::memcpy(&header, code.data(), sizeof(header));
    const std::size_t table_bytes = std::size_t{header.e_phnum} * sizeof(ElfW(Phdr));
    if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phoff > code.size() ||
        table_bytes > code.size() - header.e_phoff) {
      fail("its program headers lie outside of it");
    }
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      ElfW(Phdr) segment;
      std::memcpy(&segment, code.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
      if (segment.p_offset > code.size() || segment.p_filesz > code.size() - segment.p_offset) {
        fail(fmt::format("it is cut short: segment {} ends beyond its {} bytes", i, code.size()));
      }
    }
  }

  int descriptor_;
  void* handle_ = nullptr;
};

HostModule::HostModule(const Binary& binary, const std::vector<std::string>& entries) {
  {
    const TraceRange traced([] { return std::string("module"); });
    library_ = std::make_shared<Library>(binary.code);
  }
  const TraceRange traced([&] { return "function " + entries.front(); });
  descriptor_ = static_cast<const hone_host::ModuleDescriptor*>(library_->symbol("hone_host_module"));
  if (descriptor_ == nullptr) fail("it is a shared object, but not one of Hone's kernels");
  if (descriptor_->abi_version != hone_host::kAbiVersion) {
    fail(fmt::format("it was compiled for version {} of the host device, this is version {}; compile it again",
                     descriptor_->abi_version, hone_host::kAbiVersion));
  }
  const Segments segments = library_->segments();
  static_smem_bytes_ = segments.tls_bytes - *descriptor_->dynamic_smem_bytes;
  code_ = segments.code;
  hooks_ = static_cast<hone_host::Hooks*>(library_->symbol("hone_host_hooks"));
  host_kernels_.reserve(entries.size());
  for (const std::string& name : entries) {
    const auto* const end = descriptor_->entries + descriptor_->entry_count;
    const auto* const entry =
        std::find_if(descriptor_->entries, end, [&](const hone_host::Entry& e) { return name == e.name; });
    if (entry == end) fail(fmt::format("it has no kernel \"{}\" (unit: {})", name, descriptor_->unit_name));
    host_kernels_.push_back({this, entry, fmt::format("\"{}\" ({})", name, descriptor_->unit_name)});
  }
  for (const HostKernel& kernel : host_kernels_) {
    const int* const bytes = kernel.entry->parameter_bytes;
    kernels_.push_back({.handle = &kernel,
                        .resources = {.static_smem_bytes = static_cast<int>(static_smem_bytes_)},
                        .parameter_bytes = std::vector<int>(bytes, bytes + kernel.entry->parameters)});
  }
}

const Kernel& HostModule::kernel(int entry) const { return kernels_.at(static_cast<std::size_t>(entry)); }

void HostModule::set_hooks(const hone_host::Hooks& hooks) const {
  if (hooks_) *hooks_ = hooks;
}

SharedMemory HostModule::shared_memory(std::size_t dynamic_bytes) const {
  const std::size_t reserved = *descriptor_->dynamic_smem_bytes;
  SharedMemory shared{.static_bytes = static_smem_bytes_,
                      .dynamic_bytes = reserved > 1 ? dynamic_bytes : 0,
                      .dynamic_reserved_bytes = reserved > 1 ? reserved : 0};
  shared.begin = descriptor_->dynamic_smem() - static_smem_bytes_;
  return shared;
}

}  // namespace hone
