// The part of a tensor that autograd owns; null on tensors that never met it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "core/allocator.h"
#include "core/locks.h"
#include "core/tensor.h"

namespace facula {

class GraphNode;

// Is shown every reference that a node holds, once for each: Python's collector follows them to
// find cycles that only a graph keeps alive.
struct HeldVisitor {
  virtual void tensor(const Tensor& t) = 0;
  virtual void node(GraphNode* n) = 0;
  virtual void object(void* python_object) = 0;

 protected:
  ~HeldVisitor() = default;
};

// What dispatch and core know of a node of the graph: that it is counted and can be destroyed.
// A node that a leaf keeps outlives its last reference and may get references again, from nothing.
class GraphNode {
 public:
  explicit GraphNode(bool kept_by_leaf = false)
      : kept_by_leaf_(kept_by_leaf), count_(kept_by_leaf ? 0 : 1) {}
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;
  virtual ~GraphNode() = default;

  // Returns whether this is the first reference.
  bool retain() const { return count_.fetch_add(1, std::memory_order_acq_rel) == 0; }
  // True when this was the last reference: the caller destroys the node.
  bool release() const {
    // A sole owner needs no locked instruction, where nobody else can add a reference meanwhile.
    if (!kept_by_leaf_ && count_.load(std::memory_order_acquire) == 1) {
      count_.store(0, std::memory_order_relaxed);
      return true;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }
  bool kept_by_leaf() const { return kept_by_leaf_; }

  // Called when the last reference to a node that its leaf keeps is gone.
  virtual void on_unreferenced() {}
  // Whoever holds more than its base class shows that as well; what is not shown is never
  // collected.
  virtual void show_held(HeldVisitor&) const {}
  virtual void forget(TensorImpl*) {}  // a tensor whose gradient the node was to keep is going away

  GraphNode* next_dying = nullptr;  // while it waits to be destroyed

 private:
  const bool kept_by_leaf_;
  mutable std::atomic<uint32_t> count_;
};
// Without recursion, however long the chain of nodes that dies with this one.
void destroy(GraphNode* n);

enum class ViewKind : uint8_t {
  Default,
  NoGrad,
  MultiOutput,
  MultiOutputNoGrad,
  Inference,
  Custom
};

// Regenerates a view from a new base, where sizes, strides and offset are not enough.
struct ViewReplay {
  virtual ~ViewReplay() = default;
  virtual Tensor apply(const Tensor& base) const = 0;
};

struct TensorHook {
  uint64_t id = 0;
  std::function<Tensor(const Tensor&)> call;  // undefined result: gradient unchanged
};
struct PostAccumulateHook {
  uint64_t id = 0;
  std::function<void(const Tensor&)> call;
  void* object = nullptr;  // the Python object that `call` owns one reference to
};

// Of a leaf: what few tensors have. Read and changed under the lock of its AutogradMeta, and copied
// before anything of it is called.
struct LeafHooks {
  std::vector<TensorHook> gradient;
  std::vector<PostAccumulateHook> post_accumulate;
};

// The derivative of a tensor along the direction that forward mode follows. The level of forward
// mode that it belongs to holds it as well, to empty it when it ends.
struct Tangent : RefCounted {
  Tensor value;
  bool stopped = false;  // detach(): not even a view's base gives it one
};
inline void destroy(Tangent* t) { delete t; }
// Lets go of the value: its tensor is going away, or the level has ended.
void empty_tangent(const Ref<Tangent>& t);

// Of a leaf whose gradient may have any dtype.
inline constexpr DType any_grad_dtype{-2};

struct AutogradMeta {
  AutogradMeta() = default;
  AutogradMeta(const AutogradMeta&) = delete;
  ~AutogradMeta() {
    if (tangent) empty_tangent(tangent);
    delete accumulator.load(std::memory_order_relaxed);
    delete leaf_hooks.load(std::memory_order_relaxed);
  }
  static void* operator new(size_t bytes) { return cpu_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { cpu_free(p, bytes); }

  // Of `grad`, the leaf's hooks, and a view's grad_fn while it is renewed.
  SpinLock lock;
  bool requires_grad = false;  // asked for on a leaf
  bool retains_grad = false;
  ViewKind view_kind = ViewKind::Default;
  DType grad_dtype = DType::Undefined;  // of a leaf's gradient; undefined: the tensor's own
  uint32_t output_nr = 0;
  // Version at which grad_fn of a view was made; written after it.
  std::atomic<uint32_t> view_version{0};
  int level = 0;  // the grad level that this state belongs to
  Tensor grad;
  Ref<Tangent> tangent;  // of forward mode; null is zero
  Ref<GraphNode> grad_fn;
  std::atomic<GraphNode*> accumulator{nullptr};  // of a leaf; owned, made at its first use
  Tensor base;                                   // for views: the root, never itself a view
  std::shared_ptr<ViewReplay> replay;
  std::atomic<LeafHooks*> leaf_hooks{nullptr};  // owned, made at the first
};

inline AutogradMeta& autograd_meta(const Tensor& t) {
  if (!t->autograd) t->autograd = new AutogradMeta;
  return *t->autograd;
}
inline bool is_view(const Tensor& t) { return t->autograd && t->autograd->base.defined(); }

}  // namespace facula
