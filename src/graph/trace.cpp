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
  Key k{t->share_version().get(), t->offset, {}, t->dtype, t->conj, t->neg};
  k.geometry.assign(t.sizes().begin(), t.sizes().end());
  k.geometry.insert(k.geometry.end(), t.strides().begin(), t.strides().end());
  return k;
}

void TraceMode::remember(const Tensor& t, ValueId id) {
  Key key = key_of(t);
  kept_.try_emplace(key.memory, t->share_version());
  by_memory_[key] = id;
  // The header that a change of a storage comes with is gone after the call: what lies over the
  // storage for longer stays known.
  const auto over = over_storage_.find(t->storage.get());
  if (over == over_storage_.end() || over->second.memory == key.memory || !is_alive(over->second))
    over_storage_.insert_or_assign(t->storage.get(), OverStorage{key.memory, id});
  by_header_.insert_or_assign(t.get(), Known{std::move(key), id});
}

ValueId TraceMode::id_of(const Tensor& t) {
  if (!t.defined()) return -1;
  const Key key = key_of(t);
  if (const auto it = by_header_.find(t.get()); it != by_header_.end() && it->second.key == key)
    return it->second.id;
  if (const auto it = by_memory_.find(key); it != by_memory_.end() && t.numel() > 0)
    return it->second;
  const ValueId id = graph_.new_value();
  graph_.constants[id] = t;
  remember(t, id);
  return id;
}

// Where nobody but the trace has the tensor's counter, the tensor is gone, and its storage too.
bool TraceMode::is_alive(const OverStorage& o) const { return kept_.at(o.memory)->use_count() > 1; }

// A change of a storage that no tensor of the program asks for is recorded for one that lies over
// it.
ValueId TraceMode::id_over_storage(const Tensor& t) {
  const Key key = key_of(t);
  const auto header = by_header_.find(t.get());
  const bool known = header != by_header_.end() && header->second.key == key;
  if (known || by_memory_.contains(key)) return id_of(t);
  const auto it = over_storage_.find(t->storage.get());
  return it != over_storage_.end() && is_alive(it->second) ? it->second.id : id_of(t);
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
  const bool geometry = c.op->record->flags & geometry_only && c.args[0].is_tensor();
  const ValueId self = geometry ? id_over_storage(c.tensor(0)) : -1;
  for (int i = 0; i < c.info->args; ++i)
    node.args.push_back(geometry && i == 0 ? ValueRef{self} : recorded(c.args[i]));
  call(*c.op, c.args, c.results);
  for (int k = 0; k < c.info->results; ++k) node.results.push_back(made(c.results[k]));
  // What changes a tensor without returning it leaves it the same value in the program.
  if (geometry && c.info->results == 0) remember(c.tensor(0), self);
  graph_.nodes.push_back(std::move(node));
}

graph::Graph TraceMode::finish(std::span<const Tensor> outputs) {
  graph_.outputs.clear();
  for (const Tensor& t : outputs) graph_.outputs.push_back(id_of(t));
  return graph_;
}

}  // namespace facula
