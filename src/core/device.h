// Devices, and the one table of functions that each kind of device stands behind.
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

// What a device kind offers. `size` and `version` come first: a table built against an older
// header is shorter, and functions it lacks read as null.
struct DeviceTable {
  uint32_t size = sizeof(DeviceTable);
  uint32_t version = 1;
  const char* name = nullptr;  // "cuda", as in device strings
  // Allocates bytes > 0 on device `index`; null or an exception code is an error.
  void* (*allocate)(size_t bytes, int index) = nullptr;
  void (*release)(void* data, size_t bytes, int index) = nullptr;
  // Contiguous copies between host memory and this device, and within it. 0 is success.
  int (*copy_from_host)(void* device, const void* host, size_t bytes, int index) = nullptr;
  int (*copy_to_host)(void* host, const void* device, size_t bytes, int index) = nullptr;
  int (*copy_within)(void* to, const void* from, size_t bytes, int index) = nullptr;
  int (*device_count)() = nullptr;
  int (*current_device)() = nullptr;
  int (*set_device)(int index) = nullptr;
  int (*synchronize)(int index) = nullptr;
  void* (*new_stream)(int index) = nullptr;
  void (*delete_stream)(void* stream) = nullptr;
  void* (*new_event)(int index) = nullptr;
  int (*record_event)(void* event, void* stream) = nullptr;
  int (*wait_event)(void* event, void* stream) = nullptr;
  void (*delete_event)(void* event) = nullptr;
  void* (*allocate_pinned)(size_t bytes) = nullptr;
  void (*release_pinned)(void* data) = nullptr;
  uint64_t (*seed)(int index, uint64_t seed) = nullptr;
};

// The table of a device kind, or null where none is registered.
const DeviceTable* device_table(DeviceType type);
// The device with its index filled in: the current one of its kind. CPU and meta have none.
Device with_index(Device d);
// Registers a kind and returns its number; the table must outlive the process's use of it.
// A name that is taken raises RuntimeError.
DeviceType register_device(const DeviceTable& table);

// Allocates through the device's table; raises RuntimeError naming the device when it cannot.
void* device_allocate(Device d, size_t bytes);
void device_release(Device d, void* data, size_t bytes);

}  // namespace facula
