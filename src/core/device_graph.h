// Graphs of captured work, as CUDA graphs are.
#pragma once
#include <vector>

#include "core/stream.h"

namespace facula {

// Whether a DeviceGraph records the work given to the stream instead of running it.
bool is_capturing(Stream s);

// Records the work given to a stream between begin() and end(), and runs it again on replay(). The
// graph keeps the memory that was freed during the capture, since a replay uses it again.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;

  void begin(Stream s);
  void end();
  void replay(Stream s);
  bool is_captured() const { return handle_ != nullptr; }

 private:
  void leave_capture();
  Stream stream_;
  bool capturing_ = false;
  void* handle_ = nullptr;
  std::vector<void*> memory_;  // freed during the capture
};

}  // namespace facula
