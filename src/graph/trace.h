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
  // All headers over one memory share the counter of its versions, which costs little to keep while
  // the tensor itself goes.
  struct Key {
    const VersionCounter* memory;
    int64_t offset;
    std::vector<int64_t> geometry;
    DType dtype;
    bool conj, neg;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Tensor& t);
  void remember(const Tensor& t, graph::ValueId id);
  graph::ValueId id_of(const Tensor& t);
  graph::ValueId id_over_storage(const Tensor& t);
  graph::Argument recorded(const Value& v);
  graph::Result made(const Value& v);

  graph::Graph graph_;
  struct Known {
    Key key;  // a header that is another tensor's by now has another one
    graph::ValueId id;
  };
  std::map<const TensorImpl*, Known> by_header_;
  std::map<Key, graph::ValueId> by_memory_;
  struct OverStorage {
    const VersionCounter* memory;
    graph::ValueId id;
  };
  bool is_alive(const OverStorage& o) const;
  std::map<const Storage*, OverStorage> over_storage_;
  std::map<const VersionCounter*, Ref<VersionCounter>> kept_;  // so that addresses stay taken
};

}  // namespace facula
