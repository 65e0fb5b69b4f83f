#include "bindings/autograd/traverse.h"

#include <array>

#include "bindings/tensor/keep.h"

namespace facula::python {
namespace {

// Follows references from one owner. A thing belongs to the owner if all references to it were
// found, and then its own references are followed too. A tensor's Python object is visited if all
// references to the tensor but the object's own were found. The number of things is limited, since
// collections are frequent and graphs can be long; larger cycles are not collected.
class GraphWalk final : public HeldVisitor {
 public:
  GraphWalk(visitproc visit, void* arg) : visit_(visit), arg_(arg) {}

  void tensor(const Tensor& t) override { meet(t.get(), t->use_count(), Kind::Tensor); }
  void node(GraphNode* n) override { meet(n, n->use_count(), Kind::Node); }
  void object(void* o) override {
    if (!stop_) stop_ = visit_(static_cast<PyObject*>(o), arg_);
  }
  void look_into(const TensorImpl& t) {
    if (t.storage) meet(t.storage.get(), t.storage->use_count(), Kind::Storage);
    const AutogradMeta* m = t.autograd;
    if (!m) return;
    if (m->grad.defined()) tensor(m->grad);
    if (m->base.defined()) tensor(m->base);
    if (m->grad_fn) node(m->grad_fn.get());
    if (const LeafHooks* hooks = m->leaf_hooks.load(std::memory_order_acquire))
      for (const PostAccumulateHook& h : hooks->post_accumulate)
        if (h.object) object(h.object);
  }
  int run() {
    while (!stop_ && looked_into_ < found_) {
      Thing& t = things_[order_[looked_into_++]];
      if (t.kind == Kind::Node)
        static_cast<GraphNode*>(t.what)->show_held(*this);
      else
        look_into(*static_cast<TensorImpl*>(t.what));
    }
    return stop_;
  }

 private:
  enum class Kind : uint8_t { Tensor, Storage, Node };
  struct Thing {
    void* what;
    uint32_t missing;  // references that were not found yet
    Kind kind;
  };
  static constexpr size_t most_things = 48;

  void meet(void* what, uint32_t count, Kind kind) {
    size_t i = 0;
    while (i < count_ && things_[i].what != what) ++i;
    if (i == most_things) return;
    if (i == count_) things_[count_++] = {what, count, kind};
    Thing& t = things_[i];
    if (t.missing == 0) return;
    --t.missing;
    const ObjectCounted* counted = counted_of(t);
    void* o = counted ? counted->python_object.load(std::memory_order_relaxed) : nullptr;
    if (o && t.missing == 1 && counted->is_watched()) object(o);
    if (!o && t.missing == 0 && kind != Kind::Storage) order_[found_++] = i;
  }
  static const ObjectCounted* counted_of(const Thing& t) {
    switch (t.kind) {
      case Kind::Tensor:
        return static_cast<TensorImpl*>(t.what);
      case Kind::Storage:
        return static_cast<Storage*>(t.what);
      case Kind::Node:
        break;
    }
    return nullptr;
  }

  visitproc visit_;
  void* arg_;
  int stop_ = 0;
  size_t count_ = 0, found_ = 0, looked_into_ = 0;
  std::array<Thing, most_things> things_;
  std::array<size_t, most_things> order_;  // the things that belong to the owner
};

}  // namespace

int traverse_graph(const TensorImpl& t, visitproc visit, void* arg) {
  // Threads without the GIL could change the graph between the passes of the collector.
  const bool plain = !t.autograd && !(t.storage && t.storage->python_object.load());
  if (plain || anyone_works_without_gil()) return 0;
  GraphWalk walk(visit, arg);
  walk.look_into(t);
  return walk.run();
}

int traverse_node(GraphNode& n, visitproc visit, void* arg) {
  if (anyone_works_without_gil()) return 0;
  GraphWalk walk(visit, arg);
  walk.node(&n);
  return walk.run();
}

void clear_graph(TensorImpl& t) {
  if (!t.autograd) return;
  if (t.autograd->retains_grad && t.autograd->grad_fn) t.autograd->grad_fn->forget(&t);
  t.autograd->retains_grad = false;
  const Tensor grad = std::move(t.autograd->grad);
  const Ref<GraphNode> history = std::move(t.autograd->grad_fn);
}

}  // namespace facula::python
