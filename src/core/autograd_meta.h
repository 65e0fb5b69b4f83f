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

// A visitor that GraphNode::show_held calls once for each reference that the node holds. Python's
// cycle collector uses it to find cycles that pass through the autograd graph.
struct HeldVisitor {
  virtual void tensor(const Tensor& t) = 0;
  virtual void node(GraphNode* n) = 0;
  virtual void object(void* python_object) = 0;

 protected:
  ~HeldVisitor() = default;
};

// The base of autograd nodes, which core and dispatch can count and destroy without knowing more.
// A node with `kept_by_leaf` is owned by its leaf: it stays when its count falls to 0, and may be
// referred to again later.
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
    // With one reference, nobody else can add one, so no locked instruction is needed. This does
    // not hold for a node that its leaf may refer to again.
    if (!kept_by_leaf_ && count_.load(std::memory_order_acquire) == 1) {
      count_.store(0, std::memory_order_relaxed);
      return true;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }
  bool kept_by_leaf() const { return kept_by_leaf_; }

  // Called on a node with kept_by_leaf() when its count falls to 0.
  virtual void on_unreferenced() {}
  // A class that adds references overrides this and shows them; cycles through a reference that is
  // not shown are never collected.
  virtual void show_held(HeldVisitor&) const {}
  // Called when a tensor that had retain_grad() at this node is destroyed.
  virtual void forget(TensorImpl*) {}

  GraphNode* next_dying = nullptr;  // links the nodes that wait to be destroyed

 private:
  const bool kept_by_leaf_;
  mutable std::atomic<uint32_t> count_;
};
// Destroys the node, and without recursion all nodes that only it kept alive.
void destroy(GraphNode* n);

enum class ViewKind : uint8_t {
  Default,
  NoGrad,
  MultiOutput,
  MultiOutputNoGrad,
  Inference,
  Custom
};

// Makes a view again from a new base, for views that as_strided cannot express.
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

// The hooks of a leaf. Read and changed under the lock of its AutogradMeta; a hook is copied out
// before it is called, so that the lock is not held while it runs.
struct LeafHooks {
  std::vector<TensorHook> gradient;
  std::vector<PostAccumulateHook> post_accumulate;
};

// The tangent of a tensor in forward mode. The forward-mode level holds it too, and empties it when
// the level ends.
struct Tangent : RefCounted {
  Tensor value;
  bool stopped = false;  // set by detach(): a view then takes no tangent from its base either
};
inline void destroy(Tangent* t) { delete t; }
// Drops the value, when its tensor is destroyed or its level ends.
void empty_tangent(const Ref<Tangent>& t);

// The grad_dtype of a leaf whose gradient may have any dtype.
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

  // Guards `grad`, the leaf's hooks, and a view's grad_fn while it is made again.
  SpinLock lock;
  bool requires_grad = false;  // set by the user on a leaf; results have a grad_fn instead
  bool retains_grad = false;
  ViewKind view_kind = ViewKind::Default;
  DType grad_dtype = DType::Undefined;  // dtype of a leaf's gradient; Undefined: the tensor's own
  uint32_t output_nr = 0;
  // The version of the tensor for which a view's grad_fn was made; written after grad_fn.
  std::atomic<uint32_t> view_version{0};
  int level = 0;  // the level of nested grad transforms that this state belongs to
  Tensor grad;
  Ref<Tangent> tangent;  // in forward mode; null means zero
  Ref<GraphNode> grad_fn;
  std::atomic<GraphNode*> accumulator{nullptr};  // of a leaf; owned, made at first use
  Tensor base;                                   // for views: the root, never itself a view
  std::shared_ptr<ViewReplay> replay;
  std::atomic<LeafHooks*> leaf_hooks{nullptr};  // owned, made for the first hook
};

inline AutogradMeta& autograd_meta(const Tensor& t) {
  if (!t->autograd) t->autograd = new AutogradMeta;
  return *t->autograd;
}
inline bool is_view(const Tensor& t) { return t->autograd && t->autograd->base.defined(); }

}  // namespace facula
