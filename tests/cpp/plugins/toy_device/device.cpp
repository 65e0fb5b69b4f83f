// A device in a library of its own: opened at run time, it registers "toy" with two devices, whose
// memory the host cannot read and whose streams do their work late.
#include "device.h"

#include <cstdlib>
#include <cstring>

#include "memory.h"
#include "queue.h"

namespace toy {
namespace {

std::atomic<int> starts{0};
std::atomic<bool> gate{false};  // what is held back waits while it is shut

int device_count() { return devices; }
int start() {
  ++starts;
  return 0;
}

// As CUDA's runtime does, for libraries that work on the current device (toy_nccl).
thread_local int current = 0;
int set_device(int index) {
  current = index;
  return 0;
}

const char* error_text(int code) {
  switch (code) {
    case bad_index:
      return "there is no such toy";
    case bad_handle:
      return "this is no handle of a toy";
    case illegal_access:
      return "a toy read memory that it does not have";
  }
  return nullptr;
}

int get_properties(int index, facula_device_properties* p) {
  if (index < 0 || index >= devices) return bad_index;
  std::strcpy(p->name, "Toy that runs late");
  p->total_memory = capacity;
  p->major = 1;
  p->multi_processor_count = 1;
  p->uuid[15] = static_cast<uint8_t>(index);
  return 0;
}

// --- copies

int copy(int index, void* to, const void* from, size_t bytes, int direction, void* stream) {
  if (direction != FACULA_COPY_TO_HOST) to = on_host(to);
  if (direction != FACULA_COPY_FROM_HOST) from = on_host(from);
  queue_of(index, stream).give([=] { std::memcpy(to, from, bytes); });
  return 0;
}

int copy_peer(int, void* to, int from_index, const void* from, size_t bytes, void* stream) {
  queue_of(from_index, stream).give([=] { std::memcpy(on_host(to), on_host(from), bytes); });
  return 0;
}

int set_bytes(int index, void* data, int value, size_t bytes, void* stream) {
  queue_of(index, stream).give([=] { std::memset(on_host(data), value, bytes); });
  return 0;
}

int synchronize(int index) {
  wait_for_device(index);
  return take_error(index);
}

constexpr facula_device_table table{
    .size = sizeof(facula_device_table),
    .version = FACULA_DEVICE_TABLE_VERSION,
    .name = "toy",
    .device_count = device_count,
    .start = start,
    .set_device = set_device,
    .error_text = error_text,
    .get_properties = get_properties,
    .allocate = allocate,
    .release = release,
    .memory_info = memory_info,
    .allocate_pinned = allocate_pinned,
    .release_pinned = release_pinned,
    .is_pinned = nullptr,
    .copy = copy,
    .copy_peer = copy_peer,
    .set_bytes = set_bytes,
    .copy_strided = copy_strided,
    .synchronize = synchronize,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .query_stream = query_stream,
    .synchronize_stream = synchronize_stream,
    .priority_range = priority_range,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = record_event,
    .wait_event = wait_event,
    .query_event = query_event,
    .synchronize_event = synchronize_event,
    .elapsed_time = elapsed_time,
    .begin_capture = begin_capture,
    .end_capture = end_capture,
    .replay_graph = replay_graph,
    .destroy_graph = destroy_graph,
};

[[maybe_unused]] const bool registered = [] {
  // For programs that ask for CUDA.
  facula_device_table named = table;
  if (const char* name = std::getenv("TOY_NAME")) named.name = name;
  const facula::DeviceType type = facula::register_device(named);
  register_kernels(static_cast<int32_t>(type));
  register_fallback(type);
  return true;
}();

}  // namespace
}  // namespace toy

// What the tests look at, and the switches that they set.
extern "C" {
int toy_current_device() { return toy::current; }
void toy_give(int index, void* stream, void (*work)(void*), void* context) {
  toy::queue_of(index, stream).give([=] { work(context); });
}
void* toy_on_host(void* p) { return toy::on_host(p); }
int toy_starts() { return toy::starts; }
int64_t toy_bytes_in_use(int index) { return toy::bytes_in_use[index]; }
int64_t toy_events_alive() { return toy::events_alive; }
void toy_set_delay(int microseconds) { toy::most_delay = microseconds; }
// The work that the default stream of a device comes to next fails.
void toy_fail_late(int index) {
  toy::queue_of(index, nullptr).give([index] { toy::set_error(index, toy::illegal_access); });
}
// Holds a stream back (null: a device's default one) until all are let go.
void toy_hold(int index, void* stream) {
  toy::gate = true;
  toy::queue_of(index, stream).give([] { toy::gate.wait(true); });
}
void toy_let_go() {
  toy::gate = false;
  toy::gate.notify_all();
}
// Registers a device that has the entries up to `release` alone, as an older library would.
int toy_register_short() {
  facula_device_table shorter = toy::table;
  shorter.name = "toyshort";
  shorter.size = offsetof(facula_device_table, memory_info);
  try {
    facula::register_device(shorter);
  } catch (const facula::Error&) {
    return 1;
  }
  return 0;
}
// Registers a device without streams, events, peer and strided copies, pinned memory and capture.
void toy_register_plain() {
  facula_device_table plain = toy::table;
  plain.name = "toyplain";
  plain.size = offsetof(facula_device_table, create_stream);
  plain.allocate_pinned = nullptr;
  plain.release_pinned = nullptr;
  plain.copy_peer = nullptr;
  plain.set_bytes = nullptr;
  plain.copy_strided = nullptr;
  plain.get_properties = nullptr;
  facula::register_device(plain);
}
}
