// Devices: a kind and an index. core/device_table.h has the functions that a kind of device
// implements, core/stream.h its streams and events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace facula {

// Numbers are PyTorch's; kinds that plug-in libraries register are numbered from FirstPlugin on.
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14, FirstPlugin = 20 };
inline constexpr int max_plugin_devices = 4;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current device of this kind
  friend bool operator==(Device a, Device b) { return a.type == b.type && a.index == b.index; }
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_meta() const { return type == DeviceType::Meta; }
  // Whether it is neither the CPU nor meta: it has a device table and streams of its own.
  bool is_accelerator() const { return !is_cpu() && !is_meta(); }
};

// The text "cuda:1". It is formatted only when it is written, so that passing it to check() costs
// nothing unless the check fails.
struct DeviceText {
  Device device;
  operator std::string() const;
};
std::ostream& operator<<(std::ostream& to, const DeviceText& text);
inline DeviceText str(Device d) { return {d}; }
// Parses "cpu", "cuda:1", "meta", or a plug-in's name; throws RuntimeError for anything else.
Device parse_device(std::string_view text);

// Numbers the kinds that can have a device table from 0 to device_kinds - 1; -1 for CPU and meta.
inline constexpr int device_kinds = 1 + max_plugin_devices;
int device_kind(DeviceType type);
DeviceType device_type_of_kind(int kind);

// Whether a kind is registered, or is the CPU or meta.
bool is_registered(DeviceType type);
// The kind that a device index without a name refers to: CUDA where it is registered, else the
// first kind that a library registered, else the CPU.
DeviceType accelerator_type();
// The number of usable devices of a kind, 0 if it is not registered. Does not initialise them.
int device_count(DeviceType type);
// Whether the kind has been used in this process.
bool is_started(DeviceType type);
// Whether this process was forked from one that had used a device. Devices cannot be used in such a
// child, and it must not free what belongs to them.
bool devices_lost_by_fork();

// The index of this thread's current device of a kind, 0 at first.
int current_device_index(DeviceType type);
// RuntimeError where there is no such device.
void set_current_device(Device d);
// The device with an index: -1 becomes the current device of its kind, while CPU and meta keep -1.
// RuntimeError for an index that a registered kind does not have.
Device with_index(Device d);

// Sets the current device of a kind for a scope; does nothing for CPU and meta.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device d);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  Device before_;
};

// Allocates memory for the device's current stream; OutOfMemoryError when none is left.
void* device_allocate(Device d, size_t bytes);
// Frees it, from any thread. It is reused once all streams that use it have finished with it.
void device_release(Device d, void* data, size_t bytes);

}  // namespace facula
