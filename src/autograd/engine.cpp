#include "autograd/engine.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace facula {
namespace {

bool sole_owner(const Tensor& t) {
  return t->use_count() == 1 && t->storage->use_count() == 1 && !t->extension &&
         !(t->layers.has(Layer::Subclass));
}

// A gradient as the node that receives it must see it: summed over broadcast dimensions, of the
// forward result's dtype and device.
Tensor fit(Tensor g, const OutputMeta& m, const Node& to) {
  if (!g.defined()) return g;
  if (!same_sizes(g.sizes(), m.sizes)) {
    bool expandable = g.dim() >= static_cast<int64_t>(m.sizes.size());
    const size_t extra = static_cast<size_t>(g.dim()) - m.sizes.size();
    for (size_t d = 0; expandable && d < m.sizes.size(); ++d)
      expandable = m.sizes[d] == g.sizes()[d + extra] || m.sizes[d] == 1;
    if (!expandable)
      throw Error(ErrorKind::Runtime, "Function ", to.name(), " returned an invalid gradient: got ", str(g.sizes()),
          " but expected shape compatible with ", str(m.sizes));
    g = ops::sum_to_size(g, m.sizes);
  }
  if (is_complex(g.dtype()) && !is_complex(m.dtype) && m.dtype != DType::Undefined) g = ops::real(g);
  if (g.dtype() != m.dtype && m.dtype != DType::Undefined) g = ops::_to_copy(g, m.dtype);
  return g;
}

struct Buffer {
  Gradients grads;
  void add(uint32_t at, Tensor g) {
    if (grads.size() <= at) grads.resize(at + 1);
    grads[at] = grads[at].defined() ? accumulate(std::move(grads[at]), g) : std::move(g);
  }
};

struct LaterFirst {
  bool operator()(const Node* a, const Node* b) const { return a->sequence < b->sequence; }
};

class GraphTask {
 public:
  GraphTask(const BackwardOptions& o) : options_(o) {}

  void capture(const Edge& e, size_t index) { captures_[e.node.get()].push_back({e.output_nr, index}); }
  std::vector<Tensor> captured;

  void run(const std::vector<Edge>& roots, std::span<const Tensor> cotangents) {
    count_dependencies(roots);
    if (!captures_.empty()) find_needed(roots);
    for (size_t i = 0; i < roots.size(); ++i) {
      Node* n = roots[i].node.get();
      buffers_[n].add(roots[i].output_nr, fit(cotangents[i], n->outputs[roots[i].output_nr], *n));
      keep_.push_back(roots[i].node);
    }
    std::unordered_set<Node*> queued;
    for (const Edge& r : roots)
      if (dependencies_[r.node.get()] == 0 && queued.insert(r.node.get()).second) ready_.push(r.node.get());
    while (!ready_.empty()) {
      Node* n = ready_.top();
      ready_.pop();
      evaluate(*n);
    }
  }

 private:
  void count_dependencies(const std::vector<Edge>& roots) {
    std::vector<Node*> todo;
    std::unordered_set<Node*> seen;
    for (const Edge& r : roots)
      if (seen.insert(r.node.get()).second) todo.push_back(r.node.get());
    while (!todo.empty()) {
      Node* n = todo.back();
      todo.pop_back();
      order_.push_back(n);
      for (const Edge& e : n->next) {
        if (!e) continue;
        ++dependencies_[e.node.get()];
        if (seen.insert(e.node.get()).second) todo.push_back(e.node.get());
      }
    }
  }

  // Nodes on a path to a captured one; others need not run.
  void find_needed(const std::vector<Edge>& roots) {
    std::unordered_map<Node*, std::vector<Node*>> users;
    for (Node* n : order_)
      for (const Edge& e : n->next)
        if (e) users[e.node.get()].push_back(n);
    std::vector<Node*> todo;
    for (const auto& [n, list] : captures_) todo.push_back(n);
    while (!todo.empty()) {
      Node* n = todo.back();
      todo.pop_back();
      for (Node* user : users[n])
        if (needed_.insert(user).second) todo.push_back(user);
    }
    (void)roots;
  }

  void run_tensor_hooks(Node& n, Gradients& grads) {
    // By index: a hook may add another.
    for (size_t i = 0; i < n.tensor_hooks.size(); ++i) {
      const auto hook = n.tensor_hooks[i];
      if (hook.output_nr >= grads.size() || !grads[hook.output_nr].defined()) continue;
      if (Tensor t = hook.call(grads[hook.output_nr]); t.defined()) grads[hook.output_nr] = t;
    }
  }

  void keep_retained(Node& n, const Gradients& grads) {
    for (const auto& [at, impl] : n.retained) {
      if (at >= grads.size() || !grads[at].defined() || !impl->autograd) continue;
      Tensor& kept = impl->autograd->grad;
      kept = kept.defined() ? accumulate(kept, grads[at]) : grads[at];
    }
  }

  void evaluate(Node& n) {
    Gradients grads = std::move(buffers_[&n].grads);
    buffers_.erase(&n);
    grads.resize(std::max(n.outputs.size(), grads.size()));
    run_tensor_hooks(n, grads);
    const std::vector<NodePreHook> pre = n.pre_hooks;
    for (const NodePreHook& h : pre) h.call(grads);
    keep_retained(n, grads);
    auto captured_here = captures_.find(&n);
    if (captured_here != captures_.end())
      for (const auto& [at, index] : captured_here->second) capture_gradient(n, grads[at], index);
    const bool leaf = n.leaf().defined();
    const bool wanted = captures_.empty() || needed_.contains(&n) ||
                        (leaf && options_.accumulate && captured_here != captures_.end());
    if (wanted) {
      propagate(n, std::move(grads));
    } else {
      for (const Edge& e : n.next)
        if (e) done_with(e.node.get());
    }
  }

  void capture_gradient(Node& n, Tensor g, size_t index) {
    if (options_.accumulate) return;
    const Tensor leaf = n.leaf();
    if (leaf.defined() && g.defined())
      for (const TensorHook& h : autograd_meta(leaf).hooks)
        if (Tensor t = h.call(g); t.defined()) g = t;
    captured[index] = std::move(g);
  }

  void propagate(Node& n, Gradients grads) {
    const std::vector<NodePostHook> post = n.post_hooks;
    const Gradients inputs = post.empty() ? Gradients() : grads;
    Gradients out = n.apply(std::move(grads));
    if (!options_.retain_graph) n.release_saved();
    for (const NodePostHook& h : post) h.call(out, inputs);
    if (n.next.empty()) return;
    if (out.size() != n.next.size())
      throw Error(ErrorKind::Runtime, "Function ", n.name(), " returned an incorrect number of gradients (expected ",
                  n.next.size(), ", got ", out.size(), ")");
    for (size_t i = 0; i < out.size(); ++i) {
      const Edge& e = n.next[i];
      if (!e) continue;
      if (out[i].defined())
        buffers_[e.node.get()].add(e.output_nr, fit(std::move(out[i]), e.node->outputs[e.output_nr], n));
      done_with(e.node.get());
    }
  }

  void done_with(Node* n) {
    if (--dependencies_[n] > 0) return;
    ready_.push(n);
  }

  const BackwardOptions options_;
  std::vector<Ref<Node>> keep_;
  std::vector<Node*> order_;
  std::unordered_map<Node*, int64_t> dependencies_;
  std::unordered_map<Node*, Buffer> buffers_;
  std::unordered_map<Node*, std::vector<std::pair<uint32_t, size_t>>> captures_;
  std::unordered_set<Node*> needed_;
  std::priority_queue<Node*, std::vector<Node*>, LaterFirst> ready_;
};

}  // namespace

Tensor accumulate(Tensor into, const Tensor& more) {
  if (!more.defined()) return into;
  const bool plain = !thread_state.grad_enabled && !thread_state.modes && !thread_state.interpreters;
  if (plain && sole_owner(into) && into.is_contiguous() && into.dtype() == more.dtype() &&
      same_sizes(into.sizes(), more.sizes()))
    return ops::add_(into, more);
  return ops::add(into, more);
}

Tensor accumulate_leaf(const Tensor& grad, Tensor fresh, const Tensor& leaf) {
  if (grad.defined()) {
    if (thread_state.grad_enabled) return ops::add(grad, fresh);
    return ops::add_(grad, fresh);
  }
  if (thread_state.grad_enabled) return ops::clone(fresh);
  const bool fits = same_sizes(fresh.strides(), leaf.strides()) ||
                    (fresh.is_contiguous() && !is_dense_non_overlapping(leaf.sizes(), leaf.strides()));
  // A wrapper without its class would be no tensor at all.
  if (fresh->layers.has(Layer::Subclass)) return sole_owner(fresh) ? fresh : ops::clone(fresh);
  if (fits && sole_owner(fresh)) return detached(fresh);
  return detached(ops::clone(fresh));
}

std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                 std::span<const Tensor> inputs, const BackwardOptions& options) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < roots.size(); ++i) {
    check(requires_grad(roots[i]), "element ", i,
          " of tensors does not require grad and does not have a grad_fn");
    edges.push_back(gradient_edge(roots[i]));
  }
  GraphTask task(options);
  task.captured.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(requires_grad(inputs[i]), "One of the differentiated Tensors does not require grad");
    const Edge e = gradient_edge(inputs[i]);
    if (options.accumulate && !is_leaf(inputs[i])) retain_grad(inputs[i]);
    task.capture(e, i);
  }
  const GradMode mode(options.create_graph);
  task.run(edges, cotangents);
  if (!options.allow_unused && !options.accumulate)
    for (const Tensor& t : task.captured)
      check(t.defined(), "One of the differentiated Tensors appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior.");
  return std::move(task.captured);
}

}  // namespace facula
