// Work of a stream that is kept, to be run again.
#pragma once
#include <vector>

#include "core/stream.h"

namespace facula {

// Whether what the stream is given is kept by a DeviceGraph, not run.
bool is_capturing(Stream s);

// Work given to a stream and kept, to be run again. Memory that is let go of during the capture
// stays the graph's.
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
  std::vector<void*> memory_;  // that was let go of while the capture was on
};

}  // namespace facula
