// Streams of a device, events, and the copies that are queued on streams.
#pragma once
#include <cstdint>
#include <vector>

#include "core/device.h"

namespace facula {

// A queue of work on one device. Streams come from pools and are never destroyed, so a number
// identifies them; 0 is the device's default stream.
struct Stream {
  Device device;
  uint32_t id = 0;
  friend bool operator==(Stream a, Stream b) { return a.device == b.device && a.id == b.id; }
};

// --- the streams of a device, which must have an index

Stream current_stream(Device d);
// Makes it this thread's current stream of its device; does not change the current device.
void set_current_stream(Stream s);
// The next stream from the pool of a priority, which is clamped to the device's range; lower
// numbers run first. NotImplementedError if the device has no streams.
Stream new_stream(Device d, int priority = 0);
// Wraps a stream that another library made and owns.
Stream external_stream(Device d, void* handle);
// The stream with this number; RuntimeError if there is none.
Stream stream_of_id(Device d, uint32_t id);
// The handle of the device's library; null for the default stream.
void* stream_handle(Stream s);
int stream_priority(Stream s);
// Whether all work queued on the stream is done.
bool stream_is_done(Stream s);
void synchronize_stream(Stream s);
// Waits for all streams of a device, and raises the errors of asynchronous work.
void synchronize_device(Device d);

// Makes a stream and its device current for a scope.
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

// Marks a point in a stream's queue. Belongs to the device of the first stream that records it.
class DeviceEvent {
 public:
  // `flags`: the FACULA_EVENT_ constants of facula/device.h.
  explicit DeviceEvent(uint32_t flags = 0) : flags_(flags) {}
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;

  uint32_t flags() const { return flags_; }
  bool is_recorded() const { return handle_ != nullptr; }
  Device device() const { return device_; }
  void* handle() const { return handle_; }
  void record(Stream s);
  // Makes the stream wait for the event; does nothing if it was never recorded.
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

// Makes `later` wait for all work queued on `earlier` so far. They may belong to two devices of one
// kind. If the device has no events, the host waits instead.
void stream_waits(Stream later, Stream earlier);

// --- copies

// Queue a contiguous copy; the host memory must stay valid until the stream has finished it.
void copy_from_host(Stream s, void* device, const void* host, size_t bytes);
void copy_to_host(Stream s, void* host, const void* device, size_t bytes);
void copy_on_device(Stream s, void* to, const void* from, size_t bytes);
// Copies between two devices of one kind, in the order of both devices' current streams. False if
// the device cannot do it and the copy has to go through the host.
bool copy_to_peer(Device to_device, void* to, Device from_device, const void* from, size_t bytes);
// Sets bytes; false if the device's table has no entry for it.
bool set_device_bytes(Stream s, void* data, int value, size_t bytes);

}  // namespace facula
