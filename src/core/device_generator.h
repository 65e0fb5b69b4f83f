// Random generators of devices: a seed, and an offset that counts the numbers drawn. Kernels
// compute their numbers from these two, so that no state has to live on the device.
#pragma once
#include "core/random.h"

namespace facula {

class DeviceGenerator final : public Generator {
 public:
  explicit DeviceGenerator(Device device, uint64_t seed = default_seed);

  Device device() const override { return device_; }
  void manual_seed(uint64_t seed) override;
  uint64_t initial_seed() const override;
  // 16 bytes: seed and offset.
  State get_state() const override;
  void set_state(std::span<const uint8_t> bytes) override;
  std::unique_ptr<Generator> clone() const override;

  // Reserves the next `count` numbers of the sequence for the caller and advances the offset.
  struct Reserved {
    uint64_t seed, offset;
  };
  Reserved reserve(uint64_t count);
  uint64_t offset() const;
  // A multiple of 4, since counter-based generators make four numbers at a time.
  void set_offset(uint64_t offset);

  // A seed for a host generator, which draws in place of a device without random kernels. It is
  // computed from seed and offset, and advances the offset.
  uint64_t next_host_seed();

 private:
  const Device device_;
  mutable std::mutex state_mutex_;
  uint64_t seed_, offset_ = 0;
};

// The default generator of a device, which must have an index. Seeded from the system at first.
DeviceGenerator& default_generator(Device device);

}  // namespace facula
