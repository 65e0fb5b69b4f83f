#include "core/device.h"

#include <atomic>
#include <charconv>
#include <mutex>

#include "core/allocator.h"
#include "core/error.h"

namespace facula {
namespace {

void* cpu_table_allocate(size_t bytes, int) { return cpu_allocate(bytes); }
void cpu_table_release(void* data, size_t bytes, int) { cpu_free(data, bytes); }
int host_copy(void* to, const void* from, size_t bytes, int) {
  __builtin_memcpy(to, from, bytes);
  return 0;
}
int one_device() { return 1; }
int first_device() { return 0; }

constinit const DeviceTable cpu_table = [] {
  DeviceTable t;
  t.name = "cpu";
  t.allocate = cpu_table_allocate;
  t.release = cpu_table_release;
  t.copy_from_host = t.copy_to_host = t.copy_within = host_copy;
  t.device_count = one_device;
  t.current_device = first_device;
  return t;
}();

constinit const DeviceTable meta_table = [] {
  DeviceTable t;
  t.name = "meta";
  t.device_count = one_device;
  return t;
}();

constinit std::atomic<const DeviceTable*> plugins[max_plugin_devices] = {};
constinit std::atomic<const DeviceTable*> cuda_table{nullptr};
constinit std::mutex registration;

const char* type_name(DeviceType type) {
  if (type == DeviceType::CUDA) return "cuda";
  const DeviceTable* t = device_table(type);
  return t ? t->name : "unknown";
}

}  // namespace

const DeviceTable* device_table(DeviceType type) {
  switch (type) {
    case DeviceType::CPU:
      return &cpu_table;
    case DeviceType::Meta:
      return &meta_table;
    case DeviceType::CUDA:
      return cuda_table.load(std::memory_order_acquire);
    default:
      break;
  }
  const int slot = static_cast<int>(type) - static_cast<int>(DeviceType::FirstPlugin);
  if (slot < 0 || slot >= max_plugin_devices) return nullptr;
  return plugins[slot].load(std::memory_order_acquire);
}

Device with_index(Device d) {
  if (d.index >= 0 || d.is_cpu() || d.is_meta()) return d;
  const DeviceTable* t = device_table(d.type);
  d.index = t && t->current_device ? static_cast<int8_t>(t->current_device()) : 0;
  return d;
}

DeviceType register_device(const DeviceTable& table) {
  check(table.name && table.allocate && table.release,
        "register_device(): expected a table with name, allocate and release; got one without");
  std::lock_guard lock(registration);
  const std::string_view wanted = table.name;
  check(wanted != "cpu" && wanted != "meta", "register_device(): the name '", wanted,
        "' belongs to a built-in device");
  if (wanted == "cuda") {
    cuda_table.store(&table, std::memory_order_release);
    return DeviceType::CUDA;
  }
  for (int i = 0; i < max_plugin_devices; ++i) {
    const DeviceTable* there = plugins[i].load();
    check(!there || wanted != there->name, "register_device(): a device named '", wanted,
          "' is registered already");
    if (there) continue;
    plugins[i].store(&table, std::memory_order_release);
    return static_cast<DeviceType>(static_cast<int>(DeviceType::FirstPlugin) + i);
  }
  throw Error(ErrorKind::Runtime, "register_device(): at most ", max_plugin_devices,
              " plug-in devices can be registered");
}

DeviceText::operator std::string() const {
  std::string s = type_name(device.type);
  if (device.index >= 0) s += ":" + std::to_string(device.index);
  return s;
}

std::ostream& operator<<(std::ostream& to, const DeviceText& text) {
  return to << std::string(text);
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Device d;
  bool known = true;
  if (name == "cpu") {
    d.type = DeviceType::CPU;
  } else if (name == "cuda") {
    d.type = DeviceType::CUDA;
  } else if (name == "meta") {
    d.type = DeviceType::Meta;
  } else {
    known = false;
    for (int i = 0; i < max_plugin_devices; ++i) {
      const DeviceTable* t = plugins[i].load(std::memory_order_acquire);
      if (!t || name != t->name) continue;
      d.type = static_cast<DeviceType>(static_cast<int>(DeviceType::FirstPlugin) + i);
      known = true;
    }
  }
  check(known, "Device(): expected cpu, cuda, meta or a registered type, and an index; got '",
        text.substr(0, 64), "'");
  if (colon == std::string_view::npos) return d;
  const std::string_view digits = text.substr(colon + 1);
  int index = -1;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool plain =
      !digits.empty() && digits[0] != '-' && (digits.size() == 1 || digits[0] != '0');
  check(ec == std::errc() && end == digits.data() + digits.size() && plain && index <= 127,
        "Invalid device string: '", text.substr(0, 64), "'");
  d.index = static_cast<int8_t>(index);
  return d;
}

void* device_allocate(Device d, size_t bytes) {
  if (d.is_cpu()) return cpu_allocate(bytes);
  const DeviceTable* t = device_table(d.type);
  check(t && t->allocate, "cannot allocate on device ", str(d), ": no such device in this process");
  if (bytes == 0) return nullptr;
  void* p = t->allocate(bytes, d.index);
  check(p != nullptr, "not enough memory on ", str(d), ": tried to allocate ", bytes, " bytes");
  return p;
}

void device_release(Device d, void* data, size_t bytes) {
  if (d.is_cpu()) return cpu_free(data, bytes);
  if (data) device_table(d.type)->release(data, bytes, d.index);
}

}  // namespace facula
