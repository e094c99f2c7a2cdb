// Devices that are not there, as facts.
#pragma once

#include <hone/device_facts.h>

namespace hone {

/// An H100 as its data sheet and the driver describe it.
inline DeviceFacts h100_facts() {
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.name = "NVIDIA H100 80GB HBM3";
  facts.architecture = "sm_90";
  facts.compute_capability = 90;
  facts.sm_count = 132;
  facts.smem_bytes_per_sm = 233472;
  facts.smem_bytes_per_block_optin = 232448;
  facts.smem_bytes_reserved_per_block = 1024;
  facts.l2_bytes = 52428800;
  facts.memory_clock_khz = 2619000;
  facts.memory_bus_bits = 5120;
  facts.has_dependent_launch = true;
  facts.max_cluster_blocks = 16;
  return facts;
}

/// The SM of Kirk and Hwu, "Programming Massively Parallel Processors": 1536 threads, 8 blocks, and nothing else
/// limits.
inline DeviceFacts textbook_facts() {
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.max_threads_per_sm = 1536;
  facts.max_blocks_per_sm = 8;
  facts.registers_per_sm = 0;
  return facts;
}

/// A GPU of 82 SMs at 936 GB/s.
inline DeviceFacts gpu_of_82_sms() {
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.compute_capability = 86;
  facts.sm_count = 82;
  facts.max_threads_per_sm = 1536;
  facts.max_blocks_per_sm = 16;
  facts.smem_bytes_per_sm = 102400;
  facts.memory_clock_khz = 9751000;
  facts.memory_bus_bits = 384;
  return facts;
}

/// A CPU of two cores.
inline DeviceFacts two_core_host_facts() {
  DeviceFacts facts;
  facts.kind = "host";
  facts.sm_count = 2;
  facts.max_threads_per_sm = 1024;
  facts.max_blocks_per_sm = 1;
  facts.registers_per_sm = 0;
  facts.registers_per_block = 0;
  facts.smem_bytes_per_sm = 49152;
  return facts;
}

/// The facts about a host device that planning needs.
inline DeviceFacts host_like_facts() {
  DeviceFacts facts = two_core_host_facts();
  facts.smem_bytes_per_block_optin = 49152;
  return facts;
}

}  // namespace hone
