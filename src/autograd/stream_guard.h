// Streams in a backward pass: a node runs on the stream that its forward ran on, gradients that
// change streams are waited for, and at the end the caller's streams wait for those of the leaves.
#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "autograd/node.h"
#include "core/stream.h"

namespace facula {

// What says where a node runs; null where it has no output.
inline const OutputMeta* first_output(const Node& n) {
  for (const OutputMeta& m : n.outputs)
    if (m.dtype != DType::Undefined) return &m;
  return nullptr;
}

// While a node's backward runs; nothing for nodes of the host.
class NodeStream {
 public:
  explicit NodeStream(const Node& n) {
    const OutputMeta* m = first_output(n);
    if (m && m->device.is_accelerator()) [[unlikely]]
      guard_.emplace(Stream{m->device, m->stream});
  }

 private:
  std::optional<StreamGuard> guard_;
};

// While a gradient that was computed on this thread's current stream is added to what its receiver
// has: on the receiver's stream, which waits for it.
class GradientHandover {
 public:
  GradientHandover(const Tensor& gradient, const OutputMeta& receiver) {
    if (gradient.defined() && gradient.device().is_accelerator()) [[unlikely]]
      hand_over(gradient, receiver);
  }

 private:
  void hand_over(const Tensor& gradient, const OutputMeta& receiver);
  std::optional<StreamGuard> guard_;
};

// The streams on which a pass wrote what its caller is going to read.
class LeafStreams {
 public:
  // The node's results are read by the caller. From any thread of the pass.
  void add(const Node& n) {
    const OutputMeta* m = first_output(n);
    if (m && m->device.is_accelerator()) [[unlikely]]
      add(Stream{m->device, m->stream});
  }
  // On the caller's thread: its current streams go on when those are done.
  void rejoin();

 private:
  void add(Stream s);
  std::mutex mutex_;
  std::vector<Stream> streams_;
};

}  // namespace facula
