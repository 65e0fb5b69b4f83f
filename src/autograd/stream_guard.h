// Streams in a backward pass: a node runs on the stream of its forward call, a stream that receives
// a gradient of another waits for it, and at the end the caller's streams wait for those that wrote
// gradients of leaves.
#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "autograd/node.h"
#include "core/stream.h"

namespace facula {

// The first output of a node, which says where it runs; null if it has none.
inline const OutputMeta* first_output(const Node& n) {
  for (const OutputMeta& m : n.outputs)
    if (m.dtype != DType::Undefined) return &m;
  return nullptr;
}

// Makes a node's stream current while its backward runs; does nothing for CPU nodes.
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

// While a gradient is added to those of its receiver: makes the receiver's stream current, after it
// has waited for the stream that computed the gradient.
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

// The streams that wrote the results of a pass.
class LeafStreams {
 public:
  // Adds the stream of a node whose results the caller will read. From any thread of the pass.
  void add(const Node& n) {
    const OutputMeta* m = first_output(n);
    if (m && m->device.is_accelerator()) [[unlikely]]
      add(Stream{m->device, m->stream});
  }
  // On the caller's thread: makes its current streams wait for the added ones.
  void rejoin();

 private:
  void add(Stream s);
  std::mutex mutex_;
  std::vector<Stream> streams_;
};

}  // namespace facula
