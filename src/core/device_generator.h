// The random streams of devices: a seed and how far it has been used. Kernels make their numbers
// from both, so that no state has to live on the device.
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

  // The numbers from `offset` on of the stream of `seed` are the caller's; the next one's begin
  // `count` later.
  struct Reserved {
    uint64_t seed, offset;
  };
  Reserved reserve(uint64_t count);
  uint64_t offset() const;
  // A multiple of 4, since counter-based generators make four numbers at a time.
  void set_offset(uint64_t offset);

  // The seed of a generator of the host that makes the next numbers for a device without kernels
  // of its own: it follows from seed and offset, which moves on.
  uint64_t next_host_seed();

 private:
  const Device device_;
  mutable std::mutex state_mutex_;
  uint64_t seed_, offset_ = 0;
};

// The default generator of a device, seeded from the system at first; its index is given.
DeviceGenerator& default_generator(Device device);

}  // namespace facula
