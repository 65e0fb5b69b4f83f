#include "core/device_generator.h"

#include <atomic>
#include <cstring>

#include "core/device_table.h"
#include "core/error.h"

namespace facula {
namespace {

constexpr size_t device_state_bytes = 16;
constexpr int most_indices = 128;

// The splitmix64 hash, so that neighbouring offsets give independent seeds.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

void check_offset(uint64_t offset) {
  check(offset % 4 == 0, "offset must be a multiple of 4; got ", offset);
}

}  // namespace

DeviceGenerator::DeviceGenerator(Device device, uint64_t seed)
    : device_(with_index(device)), seed_(seed) {
  check(device.is_accelerator() && is_registered(device.type), "Device type ", str(device),
        " is not supported for torch.Generator() api.");
}

void DeviceGenerator::manual_seed(uint64_t seed) {
  const std::lock_guard lock(state_mutex_);
  seed_ = seed;
  offset_ = 0;
}
uint64_t DeviceGenerator::initial_seed() const {
  const std::lock_guard lock(state_mutex_);
  return seed_;
}
uint64_t DeviceGenerator::offset() const {
  const std::lock_guard lock(state_mutex_);
  return offset_;
}
void DeviceGenerator::set_offset(uint64_t offset) {
  check_offset(offset);
  const std::lock_guard lock(state_mutex_);
  offset_ = offset;
}

DeviceGenerator::Reserved DeviceGenerator::reserve(uint64_t count) {
  const std::lock_guard lock(state_mutex_);
  const Reserved r{seed_, offset_};
  offset_ += (count + 3) / 4 * 4;
  return r;
}

uint64_t DeviceGenerator::next_host_seed() {
  const Reserved r = reserve(4);
  return mixed(mixed(r.seed) ^ r.offset);
}

Generator::State DeviceGenerator::get_state() const {
  const std::lock_guard lock(state_mutex_);
  State bytes(device_state_bytes);
  std::memcpy(bytes.data(), &seed_, sizeof seed_);
  std::memcpy(bytes.data() + sizeof seed_, &offset_, sizeof offset_);
  return bytes;
}

void DeviceGenerator::set_state(std::span<const uint8_t> bytes) {
  check(bytes.size() == device_state_bytes, "set_state(): expected an RNG state of ",
        device_state_bytes, " bytes; got ", bytes.size());
  uint64_t seed, offset;
  std::memcpy(&seed, bytes.data(), sizeof seed);
  std::memcpy(&offset, bytes.data() + sizeof seed, sizeof offset);
  check_offset(offset);
  const std::lock_guard lock(state_mutex_);
  seed_ = seed;
  offset_ = offset;
}

std::unique_ptr<Generator> DeviceGenerator::clone() const {
  auto copy = std::make_unique<DeviceGenerator>(device_);
  copy->set_state(get_state());
  return copy;
}

DeviceGenerator& default_generator(Device device) {
  // Never destroyed, since kernels may draw until the process ends.
  static std::atomic<DeviceGenerator*> generators[device_kinds][most_indices] = {};
  device = with_index(device);
  const int kind = device_kind(device.type);
  check(kind >= 0, "default_generator(): expected an accelerator; got ", str(device));
  std::atomic<DeviceGenerator*>& slot = generators[kind][device.index];
  if (DeviceGenerator* g = slot.load(std::memory_order_acquire)) return *g;
  auto* made = new DeviceGenerator(device, random_seed());
  DeviceGenerator* other = nullptr;
  if (slot.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *other;
}

Generator& generator_for(Generator* given, Device device) {
  const DeviceType wanted = device.is_accelerator() ? device.type : DeviceType::CPU;
  if (given) {
    const Device d = given->device();
    check(d.type == wanted, "Expected a '", str(Device{wanted, -1}),
          "' device type for generator but found '", str(Device{d.type, -1}), "'");
    check(wanted == DeviceType::CPU || d == with_index(device), "Expected a generator of ",
          str(with_index(device)), " but found one of ", str(d));
  }
  if (wanted == DeviceType::CPU) return given ? *given : default_generator();
  auto& g = given ? static_cast<DeviceGenerator&>(*given) : default_generator(device);
  // On the heap, because static thread-local memory is scarce.
  static thread_local std::unique_ptr<Generator> on_host;
  if (!on_host) on_host = std::make_unique<Generator>();
  on_host->manual_seed(g.next_host_seed());
  return *on_host;
}

}  // namespace facula
