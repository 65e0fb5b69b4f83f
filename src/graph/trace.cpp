#include "graph/trace.h"

namespace facula {

using graph::Constant;
using graph::ValueId;
using graph::ValueRef;
using graph::ValueRefs;

TraceMode::TraceMode(std::span<const Tensor> inputs) {
  for (const Tensor& t : inputs) {
    const ValueId id = graph_.new_value();
    graph_.inputs.push_back(id);
    remember(t, id);
  }
}

TraceMode::Key TraceMode::key_of(const Tensor& t) {
  Key k{t->storage.get(), t->offset, {}, t->dtype, t->conj, t->neg};
  k.geometry.assign(t.sizes().begin(), t.sizes().end());
  k.geometry.insert(k.geometry.end(), t.strides().begin(), t.strides().end());
  return k;
}

void TraceMode::remember(const Tensor& t, ValueId id) {
  by_header_[t.get()] = id;
  by_memory_[key_of(t)] = id;
  kept_.push_back(t);
}

ValueId TraceMode::id_of(const Tensor& t) {
  if (!t.defined()) return -1;
  if (const auto it = by_header_.find(t.get()); it != by_header_.end()) return it->second;
  if (const auto it = by_memory_.find(key_of(t)); it != by_memory_.end() && t.numel() > 0)
    return it->second;
  const ValueId id = graph_.new_value();
  graph_.constants[id] = t;
  remember(t, id);
  return id;
}

graph::Argument TraceMode::recorded(const Value& v) {
  if (v.is_tensor()) return ValueRef{id_of(v.as_tensor())};
  if (v.tag != Tag::TensorList) return Constant(v);
  ValueRefs list;
  for (const Tensor& t : v.as_tensors()) list.push_back(id_of(t));
  return list;
}

graph::Result TraceMode::made(const Value& v) {
  auto fresh = [&](const Tensor& t) {
    if (!t.defined()) return -1;
    const ValueId id = graph_.new_value();
    remember(t, id);
    return id;
  };
  if (v.is_tensor()) return ValueRef{fresh(v.as_tensor())};
  if (v.tag != Tag::TensorList) return ValueRef{-1};
  ValueRefs list;
  for (const Tensor& t : v.as_tensors()) list.push_back(fresh(t));
  return list;
}

void TraceMode::handle(OpCall& c) {
  graph::Node node{c.op, {}, {}};
  for (int i = 0; i < c.info->args; ++i) node.args.push_back(recorded(c.args[i]));
  call(*c.op, c.args, c.results);
  for (int k = 0; k < c.info->results; ++k) node.results.push_back(made(c.results[k]));
  graph_.nodes.push_back(std::move(node));
}

graph::Graph TraceMode::finish(std::span<const Tensor> outputs) {
  graph_.outputs.clear();
  for (const Tensor& t : outputs) graph_.outputs.push_back(id_of(t));
  return graph_;
}

}  // namespace facula
