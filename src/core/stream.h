// Streams of work on a device, events between them, and what is given to them.
#pragma once
#include <cstdint>
#include <vector>

#include "core/device.h"

namespace facula {

// A queue of work of one device. Streams are taken from pools and live as long as the process, so
// that a number is enough: 0 is the default stream of the device.
struct Stream {
  Device device;
  uint32_t id = 0;
  friend bool operator==(Stream a, Stream b) { return a.device == b.device && a.id == b.id; }
};

// --- the streams of a device, whose index is given

Stream current_stream(Device d);
// Makes it the thread's current one on its device; the current device stays.
void set_current_stream(Stream s);
// The next stream of the pool for a priority: lower numbers go first, and what lies outside of the
// device's range is moved into it. NotImplementedError where the device has no streams.
Stream new_stream(Device d, int priority = 0);
// The stream that another library made; it stays theirs.
Stream external_stream(Device d, void* handle);
// A stream of which the number is known; RuntimeError where there is none.
Stream stream_of_id(Device d, uint32_t id);
// What the device's library calls it; null for the default stream.
void* stream_handle(Stream s);
int stream_priority(Stream s);
// Whether everything that was given to the stream is done.
bool stream_is_done(Stream s);
void synchronize_stream(Stream s);
// Waits for all streams of a device. Errors of work that ran late are raised here.
void synchronize_device(Device d);

// The stream is current, and its device too, for a scope.
class StreamGuard {
 public:
  explicit StreamGuard(Stream s);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream before_;
};

// --- events

// A place in a stream's work. Belongs to the device of the stream that first records it.
class DeviceEvent {
 public:
  // Of FACULA_EVENT_TIMING and its kin.
  explicit DeviceEvent(uint32_t flags = 0) : flags_(flags) {}
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;

  uint32_t flags() const { return flags_; }
  bool is_recorded() const { return handle_ != nullptr; }
  Device device() const { return device_; }
  void* handle() const { return handle_; }
  void record(Stream s);
  // The stream goes on when the work before the event is done; nothing if never recorded.
  void wait(Stream s) const;
  // Whether the work before the event is done; true if never recorded.
  bool is_done() const;
  void synchronize() const;
  // Milliseconds between two events; both must be recorded, done, and made with timing.
  double elapsed(const DeviceEvent& end) const;

 private:
  Device device_;
  void* handle_ = nullptr;
  uint32_t flags_;
};

// `later` goes on when what `earlier` has been given so far is done; they may be of two devices of
// one kind. Where a device has no events the host waits.
void stream_waits(Stream later, Stream earlier);

// --- what is given to streams

// Contiguous copies; host memory must stay valid until the stream has passed them.
void copy_from_host(Stream s, void* device, const void* host, size_t bytes);
void copy_to_host(Stream s, void* host, const void* device, size_t bytes);
void copy_on_device(Stream s, void* to, const void* from, size_t bytes);
// Between two devices of one kind, each side after the work of its current stream and before what
// that is given later. False where the device cannot, and the host has to stand between.
bool copy_to_peer(Device to_device, void* to, Device from_device, const void* from, size_t bytes);
// Sets bytes; false where the device has no entry for that.
bool set_device_bytes(Stream s, void* data, int value, size_t bytes);

}  // namespace facula
