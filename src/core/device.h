// Devices: a kind and an index. What stands behind a kind is core/device_table.h, and what can be
// done with streams of work core/stream.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace facula {

// Numbered as PyTorch's; kinds that plug-in libraries add get numbers from FirstPlugin on.
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14, FirstPlugin = 20 };
inline constexpr int max_plugin_devices = 4;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current one of its kind
  friend bool operator==(Device a, Device b) { return a.type == b.type && a.index == b.index; }
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_meta() const { return type == DeviceType::Meta; }
  // Whether a table of functions stands behind it, with streams of its own.
  bool is_accelerator() const { return !is_cpu() && !is_meta(); }
};

// "cuda:1"; made only when it is written or turned into a string, so that it costs nothing among
// the arguments of a check that holds.
struct DeviceText {
  Device device;
  operator std::string() const;
};
std::ostream& operator<<(std::ostream& to, const DeviceText& text);
inline DeviceText str(Device d) { return {d}; }
// Parses "cpu", "cuda:1", "meta", or a plug-in's name; throws RuntimeError for anything else.
Device parse_device(std::string_view text);

// A small number for each kind that has a table, from 0 to device_kinds - 1; -1 for CPU and meta.
inline constexpr int device_kinds = 1 + max_plugin_devices;
int device_kind(DeviceType type);
DeviceType device_type_of_kind(int kind);

// Whether a kind is registered, or is the CPU or meta.
bool is_registered(DeviceType type);
// The kind that device indices without a name mean: CUDA where it is registered, else the first
// kind that a library registered; the CPU where there is none.
DeviceType accelerator_type();
// How many devices of a kind can be used; 0 where it is not registered. Starts nothing.
int device_count(DeviceType type);
// Whether the kind has been used in this process.
bool is_started(DeviceType type);
// Whether this process was forked from one that had used a device: its devices cannot be used here,
// and what belonged to them is left alone.
bool devices_lost_by_fork();

// The thread's current device of a kind, 0 at first.
int current_device_index(DeviceType type);
// RuntimeError where there is no such device.
void set_current_device(Device d);
// The device with its index filled in: the current one of its kind. CPU and meta have none.
// RuntimeError for an index that a registered kind does not have.
Device with_index(Device d);

// Sets the current device of a kind for a scope; nothing for CPU and meta.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device d);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  Device before_;
};

// Memory for the stream that is current on the device; OutOfMemoryError when there is none left.
void* device_allocate(Device d, size_t bytes);
// Gives it back, from any thread: it is used again when all streams that use it have passed.
void device_release(Device d, void* data, size_t bytes);

}  // namespace facula
