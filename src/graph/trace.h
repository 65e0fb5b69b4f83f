// Tracing: a mode below autograd that runs calls and records them. Running a function and its
// backward pass under it gives the joint graph.
#pragma once
#include <map>
#include <memory>

#include "graph/graph.h"
#include "transforms/inner_mode.h"

namespace facula {

class TraceMode final : public InnerMode {
 public:
  // Records calls on these tensors as inputs, in order.
  explicit TraceMode(std::span<const Tensor> inputs);
  void handle(OpCall& c) override;
  // The graph so far, with these outputs.
  graph::Graph finish(std::span<const Tensor> outputs);

 private:
  // Tells a tensor from others by memory and geometry: saved tensors come back under new headers.
  struct Key {
    Storage* storage;
    int64_t offset;
    std::vector<int64_t> geometry;
    DType dtype;
    bool conj, neg;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Tensor& t);
  void remember(const Tensor& t, graph::ValueId id);
  graph::ValueId id_of(const Tensor& t);
  graph::Argument recorded(const Value& v);
  graph::Result made(const Value& v);

  graph::Graph graph_;
  std::map<TensorImpl*, graph::ValueId> by_header_;
  std::map<Key, graph::ValueId> by_memory_;
  std::vector<Tensor> kept_;  // addresses in the maps stay taken
};

}  // namespace facula
