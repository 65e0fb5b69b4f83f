#include "graph/pending_call.h"

#include "dispatch/running_calls.h"

namespace facula {

std::atomic<bool (*)(const ObjectCounted& c)> object_is_ours{nullptr};
std::atomic<int64_t> least_deferred{8192};

uint32_t reaching_references(const ObjectCounted& c) {
  const uint32_t all = c.use_count();
  if (!c.is_watched()) return all;
  const auto is_ours = object_is_ours.load(std::memory_order_acquire);
  return is_ours && is_ours(c) ? all - 1 : all;
}

OpCall PendingCall::prepared(Value* slots) {
  OpCall c;
  c.op = saved.op();
  c.info = info;
  c.args = saved.args();
  c.results = slots;
  c.compute = compute;
  c.layers = layers;
  if (writes()) {
    give_written(c);
    return c;
  }
  for (int i = 0; i < result_count; ++i)
    slots[i] = Value::of_tensor(results[static_cast<size_t>(i)].get());
  return c;
}

void PendingCall::describe() {
  Results<most_results> slots;
  OpCall c = prepared(slots.slots);
  const cpu::DescribeLoop describing(loop);
  const cpu::DescribeReduction or_this(reduction);
  kernel.function(kernel.context, c);
}

void PendingCall::run() {
  Results<most_results> slots;
  for (const Tensor& t : made())
    if (t.defined()) t->storage->allocate_pending();
  OpCall c = prepared(slots.slots);
  {
    const RunningCall registered(c.args, c.info->args);
    kernel.function(kernel.context, c);
  }
  for (const Tensor& t : made())
    if (t.defined()) t->storage->settle();
}

}  // namespace facula
