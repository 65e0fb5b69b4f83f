#include "core/device.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>
#include <ostream>
#include <string_view>
#include <utility>

#include "core/device_table.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/named_devices.h"

namespace facula {
namespace {

constexpr int cuda_kind = 0;
constexpr int most_indices = 128;

// A registered kind of device. Never destroyed, since devices are used until the process ends.
struct Kind {
  DeviceTable table;
  std::string name;
  std::mutex starting;
  std::atomic<bool> started{false};
};

constinit std::atomic<Kind*> kinds[device_kinds] = {};
constinit ForkSafeMutex registration(ForkOrder::Devices);
// lost_by_fork is set in a child that was forked after a device was used: the device library's
// threads and handles do not exist there.
constinit std::atomic<bool> any_started{false}, lost_by_fork{false};

// The current index of each kind.
thread_local constinit int8_t current_index[device_kinds] = {};

Kind* kind_of(DeviceType type) {
  const int k = device_kind(type);
  return k < 0 ? nullptr : kinds[k].load(std::memory_order_acquire);
}

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] {
      if (any_started) lost_by_fork = true;
    });
  });
}

void start(Kind& k, DeviceType type) {
  const std::lock_guard guard(k.starting);
  if (k.started.load(std::memory_order_relaxed)) return;
  if (k.table.start) check_device_code(k.table.start(), {type, -1}, "start");
  watch_forks();
  any_started = true;
  k.started.store(true, std::memory_order_release);
}

// Kinds that are not built in, with PyTorch's numbers, which are below those of plug-ins.
constexpr std::pair<int, std::string_view> named_kinds[] = {
    {3, "opengl"}, {4, "opencl"}, {5, "ideep"},   {6, "hip"},  {7, "fpga"},
    {8, "maia"},   {9, "xla"},    {10, "vulkan"}, {12, "xpu"}, {13, "mps"},
    {15, "hpu"},   {16, "ve"},    {17, "lazy"},   {18, "ipu"}, {19, "mtia"}};

std::string type_name(DeviceType type) {
  if (type == DeviceType::CPU) return "cpu";
  if (type == DeviceType::Meta) return "meta";
  if (type == DeviceType::CUDA) return "cuda";
  for (const auto& [number, name] : named_kinds)
    if (static_cast<int>(type) == number) return std::string(name);
  const Kind* k = kind_of(type);
  return k ? k->name : "unknown";
}

// Checks the entries that every table must have.
void check_table(const DeviceTable& t) {
  check(t.size >= offsetof(DeviceTable, release) + sizeof(t.release),
        "register_device(): expected a table that reaches at least to the entry 'release'; got ",
        t.size, " bytes");
  check(t.version == FACULA_DEVICE_TABLE_VERSION, "register_device(): expected a table of version ",
        FACULA_DEVICE_TABLE_VERSION, "; got version ", t.version);
  check(t.name && *t.name, "register_device(): expected a table with a name; got one without");
  check(t.device_count && t.allocate && t.release,
        "register_device(): expected a table with device_count, allocate and release; that of '",
        t.name, "' lacks one");
}

// Checks that of entries which belong together all or none are present.
void check_groups(const DeviceTable& t) {
  const auto whole = [&](std::initializer_list<bool> there, const char* what) {
    const auto n = std::ranges::count(there, true);
    check(n == 0 || n == static_cast<int64_t>(there.size()), "register_device(): the table of '",
          t.name, "' must have all entries for ", what, ", or none");
  };
  check(t.copy && t.synchronize, "register_device(): the table of '", t.name,
        "' lacks copy or synchronize");
  whole({t.allocate_pinned != nullptr, t.release_pinned != nullptr}, "pinned memory");
  whole({t.create_stream != nullptr, t.destroy_stream != nullptr, t.query_stream != nullptr,
         t.synchronize_stream != nullptr},
        "streams");
  whole({t.create_event != nullptr, t.destroy_event != nullptr, t.record_event != nullptr,
         t.wait_event != nullptr, t.query_event != nullptr, t.synchronize_event != nullptr},
        "events");
  whole({t.begin_capture != nullptr, t.end_capture != nullptr, t.replay_graph != nullptr,
         t.destroy_graph != nullptr},
        "capture");
}

DeviceTable read_table(const DeviceTable& given) {
  check_table(given);
  DeviceTable t{};
  std::memcpy(static_cast<void*>(&t), &given, std::min<size_t>(given.size, sizeof(DeviceTable)));
  t.size = sizeof(DeviceTable);
  check_groups(t);
  return t;
}

}  // namespace

int device_kind(DeviceType type) {
  if (type == DeviceType::CUDA) return cuda_kind;
  const int plugin = static_cast<int>(type) - static_cast<int>(DeviceType::FirstPlugin);
  return plugin >= 0 && plugin < max_plugin_devices ? 1 + plugin : -1;
}

DeviceType device_type_of_kind(int kind) {
  if (kind == cuda_kind) return DeviceType::CUDA;
  return static_cast<DeviceType>(static_cast<int>(DeviceType::FirstPlugin) + kind - 1);
}

bool is_registered(DeviceType type) {
  return type == DeviceType::CPU || type == DeviceType::Meta || kind_of(type) != nullptr;
}

DeviceType accelerator_type() {
  for (int k = 0; k < device_kinds; ++k)
    if (kinds[k].load(std::memory_order_acquire)) return device_type_of_kind(k);
  return DeviceType::CPU;
}

const DeviceTable* device_table(DeviceType type) {
  const Kind* k = kind_of(type);
  return k ? &k->table : nullptr;
}

const DeviceTable& running_table(DeviceType type) {
  Kind* k = kind_of(type);
  check(k != nullptr, "expected a kind of device that is in this process; got ", type_name(type),
        ", which no library has registered");
  check(!devices_lost_by_fork(), "Cannot re-initialize ", k->name, " in forked subprocess. To use ",
        k->name, " with multiprocessing, you must use the 'spawn' start method");
  if (!k->started.load(std::memory_order_acquire)) [[unlikely]]
    start(*k, type);
  return k->table;
}

bool is_started(DeviceType type) {
  const Kind* k = kind_of(type);
  return k && k->started.load(std::memory_order_acquire) && !lost_by_fork;
}

bool devices_lost_by_fork() { return lost_by_fork.load(std::memory_order_relaxed); }

int device_count(DeviceType type) {
  const Kind* k = kind_of(type);
  return k ? std::clamp(k->table.device_count(), 0, most_indices) : 0;
}

int current_device_index(DeviceType type) {
  const int k = device_kind(type);
  return k < 0 ? -1 : current_index[k];
}

namespace {
void check_index(Device d) {
  const int count = device_count(d.type);
  check(d.index < count, "expected a device of ", type_name(d.type), " with an index below ", count,
        "; got ", str(d));
}
}  // namespace

void set_current_device(Device d) {
  const int k = device_kind(d.type);
  check(k >= 0, "expected an accelerator; got ", str(d));
  if (d.index < 0 || d.index == current_index[k]) return;
  check_index(d);
  const DeviceTable& t = running_table(d);
  if (t.set_device) check_device_code(t.set_device(d.index), d, "set_device");
  current_index[k] = d.index;
}

Device with_index(Device d) {
  if (!d.is_accelerator()) return d;
  if (d.index < 0)
    d.index = static_cast<int8_t>(std::max(current_device_index(d.type), 0));
  else if (is_registered(d.type))
    check_index(d);
  return d;
}

DeviceGuard::DeviceGuard(Device d) {
  if (!d.is_accelerator()) return;
  before_ = {d.type, static_cast<int8_t>(current_device_index(d.type))};
  set_current_device(d);
}
DeviceGuard::~DeviceGuard() {
  if (!before_.is_accelerator()) return;
  try {
    set_current_device(before_);
  } catch (const Error&) {
    // A destructor must not throw; the next use of the device reports the error.
  }
}

DeviceType register_device(const DeviceTable& given) {
  const DeviceTable table = read_table(given);
  const std::string_view wanted = table.name;
  check(wanted != "cpu" && wanted != "meta", "register_device(): the name '", wanted,
        "' belongs to a built-in device");
  check(wanted.find(':') == std::string_view::npos, "register_device(): a name has no colon; got '",
        wanted, "'");
  const std::lock_guard lock(registration);
  int free = -1;
  for (int i = device_kinds - 1; i >= 0; --i) {
    const Kind* there = kinds[i].load();
    check(!there || wanted != there->name, "register_device(): a device named '", wanted,
          "' is registered already");
    if (!there && (i == cuda_kind) == (wanted == "cuda")) free = i;
  }
  check(free >= 0, "register_device(): at most ", max_plugin_devices,
        " plug-in devices can be registered");
  kinds[free].store(new Kind{table, std::string(wanted), {}, false}, std::memory_order_release);
  return device_type_of_kind(free);
}

void check_device_code(int code, Device d, const char* what) {
  if (code == 0) [[likely]]
    return;
  const DeviceTable* t = device_table(d.type);
  const char* words = t && t->error_text ? t->error_text(code) : nullptr;
  throw Error(ErrorKind::Accelerator, str(d), ": ", words ? words : "an error of the device",
              " (code ", code, " of ", what, ")");
}

void missing_entry(Device d, const char* entry) {
  throw Error(ErrorKind::NotImplemented, "the device '", type_name(d.type),
              "' cannot do this: its table has no entry '", entry, "'");
}

DeviceText::operator std::string() const {
  std::string s = type_name(device.type);
  if (device.index >= 0) s += ":" + std::to_string(device.index);
  return s;
}

std::ostream& operator<<(std::ostream& to, const DeviceText& text) {
  return to << std::string(text);
}

namespace {
// Sets `type` to the kind of that name; false if there is none.
bool find_type(std::string_view name, DeviceType& type) {
  for (DeviceType t : {DeviceType::CPU, DeviceType::CUDA, DeviceType::Meta})
    if (name == type_name(t)) {
      type = t;
      return true;
    }
  for (int i = 0; i < device_kinds; ++i) {
    const Kind* k = kinds[i].load(std::memory_order_acquire);
    if (!k || name != k->name) continue;
    type = device_type_of_kind(i);
    return true;
  }
  return false;
}

bool find_named(std::string_view name, DeviceType& type) {
  for (const auto& [number, known] : named_kinds)
    if (name == known) {
      type = static_cast<DeviceType>(number);
      return true;
    }
  return false;
}

bool has_only_a_name(DeviceType type) {
  return type != DeviceType::Meta && static_cast<int>(type) > static_cast<int>(DeviceType::CUDA) &&
         type < DeviceType::FirstPlugin;
}
}  // namespace

Device parse_device(std::string_view text) {
  const Device d = parse_named_device(text);
  check_present(d);
  return d;
}

void check_present(Device d) {
  check(!has_only_a_name(d.type), "expected a device that is in this process; got '",
        type_name(d.type), "', a kind that no library has registered");
}

Device parse_named_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  Device d;
  check(find_type(kind, d.type) || find_named(kind, d.type),
        "Device(): expected cpu, cuda, meta, another kind's name or a registered one, and an "
        "index; got '",
        text.substr(0, 64), "'");
  if (colon == std::string_view::npos) return d;
  const std::string_view digits = text.substr(colon + 1);
  int index = -1;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool plain =
      !digits.empty() && digits[0] != '-' && (digits.size() == 1 || digits[0] != '0');
  check(ec == std::errc() && end == digits.data() + digits.size() && plain && index < most_indices,
        "Invalid device string: '", text.substr(0, 64), "'");
  d.index = static_cast<int8_t>(index);
  return d;
}

}  // namespace facula
