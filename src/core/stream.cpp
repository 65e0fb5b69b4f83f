#include "core/stream.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device_allocator.h"
#include "core/device_graph.h"
#include "core/device_table.h"
#include "core/error.h"
#include "core/late_error.h"

namespace facula {
namespace {

// The number of streams for one device and priority, which new_stream() returns in turn.
constexpr size_t pool_size = 32;

struct Entry {
  Device device;
  void* handle;
  int priority;
};

// All streams except the default ones, by number. Entries are added under the mutex and never
// change, so reading needs no lock.
class StreamList {
 public:
  const Entry& operator[](uint32_t id) const {
    return chunks_[id / chunk].load(std::memory_order_acquire)[id % chunk];
  }
  bool has(uint32_t id) const { return id > 0 && id < size_.load(std::memory_order_acquire); }
  uint32_t add(const Entry& e) {
    const uint32_t id = size_.load(std::memory_order_relaxed);
    check(id < chunk * most_chunks, "at most ", chunk * most_chunks, " streams can be made");
    Entry* list = chunks_[id / chunk].load(std::memory_order_relaxed);
    if (!list) chunks_[id / chunk].store(list = new Entry[chunk], std::memory_order_release);
    list[id % chunk] = e;
    size_.store(id + 1, std::memory_order_release);
    return id;
  }

 private:
  static constexpr uint32_t chunk = 256, most_chunks = 256;
  std::atomic<Entry*> chunks_[most_chunks] = {};
  std::atomic<uint32_t> size_{1};  // number 0 means the default stream
};

struct Pool {
  std::vector<uint32_t> ids;
  size_t next = 0;
};

// Never destroyed, since streams are used until the process ends.
struct Streams {
  std::mutex mutex;
  StreamList list;
  std::map<std::pair<int, int>, std::map<int, Pool>> pools;  // by kind and index, by priority
  std::map<std::pair<int, int>, std::map<void*, uint32_t>> external;
};
Streams& streams() {
  static auto* s = new Streams;
  return *s;
}

std::pair<int, int> key(Device d) { return {device_kind(d.type), d.index}; }

// The numbers of this thread's current streams, by kind and index. Allocated on the heap when the
// first one is set, because static thread-local memory is scarce.
struct CurrentStreams {
  std::vector<uint32_t> of[device_kinds];
};
thread_local std::unique_ptr<CurrentStreams> current;

const Entry* entry_of(Stream s) { return s.id ? &streams().list[s.id] : nullptr; }

// The range of priorities of a device; (0, 0) if its table has no entry for it.
std::pair<int, int> priorities(const DeviceTable& t, Device d) {
  int least = 0, greatest = 0;
  if (t.priority_range) check_device_code(t.priority_range(&least, &greatest), d, "priority_range");
  return {std::min(least, greatest), std::max(least, greatest)};
}

// Interprets the result of a query: whether the work is done.
bool is_ready(int code, Device d, const char* what) {
  if (code == FACULA_DEVICE_NOT_READY) return false;
  check_device_code(code, d, what);
  return true;
}

void check_copy(int code, Device d) { check_device_code(code, d, "copy"); }

}  // namespace

Stream current_stream(Device d) {
  const int k = device_kind(d.type);
  if (k < 0 || !current) return {d, 0};
  const std::vector<uint32_t>& ids = current->of[k];
  const auto i = static_cast<size_t>(d.index);
  return {d, i < ids.size() ? ids[i] : 0};
}

void set_current_stream(Stream s) {
  const int k = device_kind(s.device.type);
  if (k < 0) return;
  if (!current) current = std::make_unique<CurrentStreams>();
  std::vector<uint32_t>& ids = current->of[k];
  const auto i = static_cast<size_t>(s.device.index);
  if (i >= ids.size()) ids.resize(i + 1);
  ids[i] = s.id;
}

Stream new_stream(Device d, int priority) {
  const DeviceTable& t = running_table(d);
  needed_entry(t.create_stream, d, "create_stream");
  const auto [first, last] = priorities(t, d);
  priority = std::clamp(priority, first, last);
  Streams& all = streams();
  const std::lock_guard guard(all.mutex);
  Pool& pool = all.pools[key(d)][priority];
  if (pool.ids.size() < pool_size) {
    void* handle = nullptr;
    check_device_code(t.create_stream(d.index, priority, &handle), d, "create_stream");
    pool.ids.push_back(all.list.add({d, handle, priority}));
    return {d, pool.ids.back()};
  }
  return {d, pool.ids[pool.next++ % pool_size]};
}

Stream external_stream(Device d, void* handle) {
  running_table(d);
  if (!handle) return {d, 0};
  Streams& all = streams();
  const std::lock_guard guard(all.mutex);
  uint32_t& id = all.external[key(d)][handle];
  if (!id) id = all.list.add({d, handle, 0});
  return {d, id};
}

Stream stream_of_id(Device d, uint32_t id) {
  check(id == 0 || (streams().list.has(id) && streams().list[id].device == d), "Stream: ", str(d),
        " has no stream with the number ", id);
  return {d, id};
}

void* stream_handle(Stream s) {
  const Entry* e = entry_of(s);
  return e ? e->handle : nullptr;
}
int stream_priority(Stream s) {
  const Entry* e = entry_of(s);
  return e ? e->priority : 0;
}

bool stream_is_done(Stream s) {
  const DeviceTable& t = running_table(s.device);
  needed_entry(t.query_stream, s.device, "query_stream");
  return is_ready(t.query_stream(s.device.index, stream_handle(s)), s.device, "query_stream");
}

void synchronize_stream(Stream s) {
  if (!s.device.is_accelerator()) return;
  const DeviceTable& t = running_table(s.device);
  if (!t.synchronize_stream) return synchronize_device(s.device);
  check_device_code(t.synchronize_stream(s.device.index, stream_handle(s)), s.device,
                    "synchronize_stream");
  raise_late_error(s.device);
}

void synchronize_device(Device d) {
  if (!d.is_accelerator()) return;
  check_device_code(running_table(d).synchronize(d.index), d, "synchronize");
  raise_late_error(d);
}

StreamGuard::StreamGuard(Stream s) : device_(s.device), before_(current_stream(s.device)) {
  set_current_stream(s);
}
StreamGuard::~StreamGuard() { set_current_stream(before_); }

// --- events

DeviceEvent::~DeviceEvent() {
  if (handle_) device_table(device_.type)->destroy_event(device_.index, handle_);
}

void DeviceEvent::record(Stream s) {
  const Device d = s.device;
  const DeviceTable& t = running_table(d);
  needed_entry(t.create_event, d, "create_event");
  check(!handle_ || device_ == d, "Event: expected a stream of ", str(device_),
        ", where the event was first recorded; got one of ", str(d));
  if (!handle_) {
    check_device_code(t.create_event(d.index, flags_, &handle_), d, "create_event");
    device_ = d;
  }
  check_device_code(t.record_event(d.index, handle_, stream_handle(s)), d, "record_event");
}

void DeviceEvent::wait(Stream s) const {
  if (!handle_) return;
  check(s.device.type == device_.type, "Event: expected a stream of the same kind of device; got ",
        str(s.device), " and an event of ", str(device_));
  check_device_code(running_table(device_).wait_event(s.device.index, handle_, stream_handle(s)),
                    s.device, "wait_event");
}

bool DeviceEvent::is_done() const {
  if (!handle_) return true;
  return is_ready(running_table(device_).query_event(device_.index, handle_), device_,
                  "query_event");
}

void DeviceEvent::synchronize() const {
  if (!handle_) return;
  check_device_code(running_table(device_).synchronize_event(device_.index, handle_), device_,
                    "synchronize_event");
  raise_late_error(device_);
}

double DeviceEvent::elapsed(const DeviceEvent& end) const {
  check(handle_ && end.handle_, "Both events must be recorded before calculating elapsed time.");
  check(device_ == end.device_, "elapsed_time(): expected two events of one device; got ",
        str(device_), " and ", str(end.device_));
  check_value((flags_ & FACULA_EVENT_TIMING) && (end.flags_ & FACULA_EVENT_TIMING),
              "Both events must be created with argument 'enable_timing=True'.");
  check(is_done() && end.is_done(),
        "Both events must be completed before calculating elapsed time.");
  const DeviceTable& t = running_table(device_);
  needed_entry(t.elapsed_time, device_, "elapsed_time");
  double milliseconds = 0;
  check_device_code(t.elapsed_time(device_.index, handle_, end.handle_, &milliseconds), device_,
                    "elapsed_time");
  return milliseconds;
}

void stream_waits(Stream later, Stream earlier) {
  if (later == earlier || !earlier.device.is_accelerator()) return;
  if (!running_table(earlier.device).create_event || later.device.type != earlier.device.type)
    return synchronize_stream(earlier);
  DeviceEvent event;
  event.record(earlier);
  event.wait(later);
}

// --- copies

void copy_from_host(Stream s, void* device, const void* host, size_t bytes) {
  if (bytes == 0) return;
  check_copy(running_table(s.device).copy(s.device.index, device, host, bytes,
                                          FACULA_COPY_FROM_HOST, stream_handle(s)),
             s.device);
}
void copy_to_host(Stream s, void* host, const void* device, size_t bytes) {
  if (bytes == 0) return;
  check_copy(running_table(s.device).copy(s.device.index, host, device, bytes, FACULA_COPY_TO_HOST,
                                          stream_handle(s)),
             s.device);
}
void copy_on_device(Stream s, void* to, const void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  check_copy(running_table(s.device).copy(s.device.index, to, from, bytes, FACULA_COPY_WITHIN,
                                          stream_handle(s)),
             s.device);
}

bool copy_to_peer(Device to_device, void* to, Device from_device, const void* from, size_t bytes) {
  const DeviceTable& t = running_table(from_device);
  if (!t.copy_peer || to_device.type != from_device.type) return false;
  if (bytes == 0) return true;
  const Stream source = current_stream(from_device), target = current_stream(to_device);
  stream_waits(source, target);  // the target's memory may still be in use on its stream
  const int code =
      t.copy_peer(to_device.index, to, from_device.index, from, bytes, stream_handle(source));
  if (code == FACULA_DEVICE_NOT_SUPPORTED) return false;
  check_device_code(code, from_device, "copy_peer");
  stream_waits(target, source);
  return true;
}

bool set_device_bytes(Stream s, void* data, int value, size_t bytes) {
  const DeviceTable& t = running_table(s.device);
  if (!t.set_bytes) return false;
  if (bytes == 0) return true;
  check_device_code(t.set_bytes(s.device.index, data, value, bytes, stream_handle(s)), s.device,
                    "set_bytes");
  return true;
}

// --- capture

namespace {
constinit std::mutex capture_mutex;
std::vector<Stream>& captured_streams() {
  static auto* s = new std::vector<Stream>;
  return *s;
}
}  // namespace

bool is_capturing(Stream s) {
  const std::lock_guard guard(capture_mutex);
  return std::ranges::find(captured_streams(), s) != captured_streams().end();
}

void DeviceGraph::begin(Stream s) {
  check(!capturing_ && !handle_, "capture_begin(): this graph has been captured already");
  const DeviceTable& t = running_table(s.device);
  needed_entry(t.begin_capture, s.device, "begin_capture");
  check_device_code(t.begin_capture(s.device.index, stream_handle(s)), s.device, "begin_capture");
  begin_memory_capture(s.device);
  {
    const std::lock_guard guard(capture_mutex);
    captured_streams().push_back(s);
  }
  stream_ = s;
  capturing_ = true;
}

void DeviceGraph::end() {
  check(capturing_, "capture_end(): expected a capture that was begun; got none");
  leave_capture();
  const Device d = stream_.device;
  check_device_code(running_table(d).end_capture(d.index, stream_handle(stream_), &handle_), d,
                    "end_capture");
}

void DeviceGraph::leave_capture() {
  capturing_ = false;
  memory_ = end_memory_capture(stream_.device);
  const std::lock_guard guard(capture_mutex);
  std::erase(captured_streams(), stream_);
}

void DeviceGraph::replay(Stream s) {
  check(handle_ != nullptr, "replay(): expected a graph that has been captured");
  const Device d = stream_.device;
  check(s.device == d, "replay(): expected a stream of ", str(d), "; got one of ", str(s.device));
  check_device_code(running_table(d).replay_graph(d.index, handle_, stream_handle(s)), d,
                    "replay_graph");
}

DeviceGraph::~DeviceGraph() {
  const Device d = stream_.device;
  const DeviceTable* t = device_table(d.type);
  if (capturing_) {
    leave_capture();
    t->end_capture(d.index, stream_handle(stream_), &handle_);
  }
  if (handle_) {
    t->synchronize(d.index);  // a replay may still be running
    t->destroy_graph(d.index, handle_);
  }
  for (void* p : memory_) device_release(d, p, 0);
}

}  // namespace facula
