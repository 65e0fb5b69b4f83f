#include "autograd/stream_guard.h"

#include <algorithm>

#include "core/device_allocator.h"

namespace facula {

void GradientHandover::hand_over(const Tensor& gradient, const OutputMeta& receiver) {
  const Device d = gradient.device();
  if (receiver.device != d) return;
  const Stream from = current_stream(d), to{d, receiver.stream};
  if (from == to) return;
  stream_waits(to, from);
  // The memory is used on both streams, and was allocated for one of them.
  if (gradient->storage && gradient->storage->has_memory()) {
    record_stream(d, gradient->storage->data(), to);
    record_stream(d, gradient->storage->data(), from);
  }
  guard_.emplace(to);
}

void LeafStreams::add(Stream s) {
  const std::lock_guard guard(mutex_);
  if (std::ranges::find(streams_, s) == streams_.end()) streams_.push_back(s);
}

void LeafStreams::rejoin() {
  const std::lock_guard guard(mutex_);
  for (const Stream& s : streams_) stream_waits(current_stream(s.device), s);
  streams_.clear();
}

}  // namespace facula
