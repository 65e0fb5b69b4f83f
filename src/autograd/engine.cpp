#include "autograd/engine.h"

#include <algorithm>
#include <condition_variable>
#include <queue>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "autograd/node_table.h"
#include "autograd/workers.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/reduce.h"

namespace facula {
namespace {

class GraphTask;

// Passes inside passes on one thread go this deep; then a fresh stack is taken.
constexpr int max_depth = 60;

struct EngineThread {
  GraphTask* task = nullptr;
  Node* node = nullptr;
  int depth = 0;
  bool buffers_shown = false;  // to the node that runs
};
thread_local constinit EngineThread here __attribute__((tls_model("initial-exec"))) = {};
constinit std::atomic<int64_t> next_pass{0};
thread_local constinit bool multithreading = true;

// What runs now, for the time of a scope.
class Running {
 public:
  Running(GraphTask* task, int deeper) : before_(here) {
    here.task = task;
    here.node = nullptr;
    here.buffers_shown = false;
    here.depth += deeper;
  }
  ~Running() { here = before_; }
  Running(const Running&) = delete;

 private:
  EngineThread before_;
};

class GraphTask : public std::enable_shared_from_this<GraphTask> {
 public:
  explicit GraphTask(const BackwardOptions& o) : options_(o) {}

  const int64_t id = next_pass.fetch_add(1);
  std::vector<Tensor> captured;

  bool keeps_graph() const { return options_.retain_graph; }
  // Passes on several threads show none: another thread may be adding.
  std::vector<Tensor> buffers(Node& n) {
    check(!options_.create_graph,
          "input_grad_buffers: the pass must not record a graph; got "
          "create_graph=True");
    check(!anomaly_enabled(), "input_grad_buffers: anomaly detection must be off");
    check(!n.has_hooks() || n.hooks().post.empty(),
          "input_grad_buffers: the node must have no post hooks");
    std::vector<Tensor> found(n.next.size());
    for (size_t i = 0; i < n.next.size() && !several_threads_; ++i) {
      const Edge& e = n.next[i];
      const uint32_t at = e ? table_.find(e.node.get()) : NodeTable::none;
      if (at == NodeTable::none || e.output_nr >= table_[at].grads.size()) continue;
      const Tensor& sum = table_[at].grads[e.output_nr];
      if (may_add_to(sum)) found[i] = sum;
    }
    return found;
  }
  bool partial() const { return partial_; }
  bool will_run(Node& n) {
    const uint32_t i = table_.find(&n);
    return i != NodeTable::none && table_[i].needed;
  }
  void add_callback(std::function<void()> f) {
    const std::lock_guard guard(mutex_);
    callbacks_.push_back(std::move(f));
  }

  void run(const std::vector<Edge>& roots, std::span<const Tensor> cotangents,
           const std::vector<Edge>& inputs) {
    const Running scope(this, 1);
    captured.resize(inputs.size());
    partial_ = !inputs.empty();
    discover(roots);
    if (inputs.empty())
      need_all();
    else
      need_paths_to(inputs);
    start(roots, cotangents);
    work();
    // By index: a callback may queue another.
    for (size_t i = 0; i < callbacks_.size(); ++i) callbacks_[i]();
  }

 private:
  struct Capture {
    uint32_t state, output_nr;
    size_t index;
  };
  struct EarlierLast {
    NodeTable* table;
    bool operator()(uint32_t a, uint32_t b) const {
      return (*table)[a].node->sequence < (*table)[b].node->sequence;
    }
  };
  using Queue = std::priority_queue<uint32_t, std::vector<uint32_t>, EarlierLast>;

  // --- before the run

  void discover(const std::vector<Edge>& roots) {
    for (const Edge& r : roots) table_.insert(r.node.get());
    for (uint32_t i = 0; i < table_.size(); ++i) {
      const Node* n = table_[i].node;
      several_threads_ |= multithreading && !runs_here(*n);
      for (const Edge& e : n->next)
        if (e) ++table_[table_.insert(e.node.get()).first].dependencies;
    }
  }

  void need_all() {
    for (uint32_t i = 0; i < table_.size(); ++i) table_[i].needed = true;
  }

  // Nodes run that lie on a path to an input; dependencies are counted from those alone.
  void need_paths_to(const std::vector<Edge>& inputs) {
    std::vector<uint32_t> todo;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint32_t at = table_.find(inputs[i].node.get());
      if (at == NodeTable::none) continue;
      todo.push_back(at);
      if (options_.accumulate) {
        table_[at].needed = true;
      } else {
        table_[at].captured = true;
        captures_.push_back({at, inputs[i].output_nr, i});
      }
    }
    mark_users(std::move(todo));
    for (uint32_t i = 0; i < table_.size(); ++i) table_[i].dependencies = 0;
    for (uint32_t i = 0; i < table_.size(); ++i) {
      if (!table_[i].needed) continue;
      for (const Edge& e : table_[i].node->next)
        if (e) ++table_[table_.find(e.node.get())].dependencies;
    }
  }

  void mark_users(std::vector<uint32_t> todo) {
    // Lists of users in two arrays: the first link of each node, and {user, next link}.
    std::vector<uint32_t> first(table_.size(), NodeTable::none);
    std::vector<std::pair<uint32_t, uint32_t>> links;
    for (uint32_t i = 0; i < table_.size(); ++i)
      for (const Edge& e : table_[i].node->next) {
        if (!e) continue;
        uint32_t& head = first[table_.find(e.node.get())];
        links.emplace_back(i, std::exchange(head, static_cast<uint32_t>(links.size())));
      }
    std::vector<bool> seen(table_.size());
    while (!todo.empty()) {
      const uint32_t at = todo.back();
      todo.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      for (uint32_t l = first[at]; l != NodeTable::none; l = links[l].second) {
        table_[links[l].first].needed = true;
        todo.push_back(links[l].first);
      }
    }
  }

  void start(const std::vector<Edge>& roots, std::span<const Tensor> cotangents) {
    for (size_t i = 0; i < roots.size(); ++i) {
      Node* n = roots[i].node.get();
      const uint32_t at = table_.find(n);
      add(at, roots[i].output_nr, fit(cotangents[i], n->outputs[roots[i].output_nr], *n, i));
    }
    for (const Edge& r : roots) {
      const uint32_t at = table_.find(r.node.get());
      if (table_[at].dependencies == 0) queue(at);
    }
  }

  // --- the run

  void queue(uint32_t at) {
    NodeTable::State& s = table_[at];
    if (s.queued || !(s.needed || s.captured)) return;
    s.queued = true;
    ++outstanding_;
    if (!several_threads_ || runs_here(*s.node)) {
      ready_.push(at);
      if (several_threads_) wake_.notify_all();
      return;
    }
    const Device device = s.node->outputs[0].device;
    run_on_worker(device, [task = shared_from_this(), at] { task->run_foreign(at); });
  }
  bool runs_here(const Node& n) const {
    if (n.outputs.empty()) return true;
    const Device d = n.outputs[0].device;
    return d.is_cpu() || d.is_meta() || d == owner_device_;
  }

  void work() {
    if (!several_threads_) {
      while (!ready_.empty()) evaluate(pop());
      return;
    }
    std::unique_lock guard(mutex_);
    while (outstanding_ > 0 && !error_.any()) {
      if (ready_.empty()) {
        wait(guard, [this] { return outstanding_ == 0 || error_.any() || !ready_.empty(); });
        continue;
      }
      const uint32_t at = pop();
      guard.unlock();
      evaluate_and_count(at);
      guard.lock();
    }
    // Workers that are inside a node still refer to this task.
    wait(guard, [this] { return running_elsewhere_ == 0; });
    if (error_.any()) error_.rethrow();
  }
  template <class Condition>
  void wait(std::unique_lock<std::recursive_mutex>& guard, Condition done) {
    if (done()) return;
    const WorkerWaits waits;
    wake_.wait(guard, done);
  }
  uint32_t pop() {
    const uint32_t at = ready_.top();
    ready_.pop();
    return at;
  }

  // On a worker.
  void run_foreign(uint32_t at) {
    {
      const std::lock_guard guard(mutex_);
      if (error_.any() || finished_) return;
      ++running_elsewhere_;
    }
    const ThreadState before = thread_state;
    thread_state = state_;
    set_saved_tensor_state(saved_state_);
    {
      const Running scope(this, 1);
      evaluate_and_count(at);
    }
    set_saved_tensor_state(nullptr);
    thread_state = before;
    const std::lock_guard guard(mutex_);
    --running_elsewhere_;
    wake_.notify_all();
  }
  void evaluate_and_count(uint32_t at) {
    CarriedError failure;
    try {
      evaluate(at);
    } catch (...) {
      failure.take();
    }
    const std::lock_guard guard(mutex_);
    --outstanding_;
    if (failure.any() && !error_.any()) error_ = failure;
    wake_.notify_all();
  }

  void evaluate(uint32_t at) {
    Node& n = *table_[at].node;
    Gradients grads = std::move(table_[at].grads);
    if (grads.size() < n.outputs.size()) grads.resize(n.outputs.size());
    const bool needed = table_[at].needed;
    here.node = &n;
    if (table_[at].captured) {
      if (!needed) run_tensor_hooks(n, grads);
      for (const Capture& c : captures_)
        if (c.state == at && c.output_nr < grads.size()) captured[c.index] = grads[c.output_nr];
    }
    if (needed) {
      if (anomaly_enabled()) [[unlikely]]
        propagate_watched(n, std::move(grads));
      else
        propagate(n, std::move(grads));
    }
    here.node = nullptr;
    here.buffers_shown = false;
  }

  void run_tensor_hooks(Node& n, Gradients& grads) {
    if (is_accumulator(n)) return run_leaf_hooks(n, grads);
    if (!n.has_hooks()) return;
    NodeHooks& h = n.hooks();
    for (const NodeTensorHook& hook : copied(n, h.tensor))
      if (hook.output_nr < grads.size())
        if (Tensor t = hook.call(grads[hook.output_nr]); t.defined()) grads[hook.output_nr] = t;
    for (const auto& [nr, impl] : copied(n, h.retained))
      if (nr < grads.size() && grads[nr].defined() && impl->autograd)
        retain(impl->autograd->grad, grads[nr]);
  }
  void run_leaf_hooks(Node& n, Gradients& grads) {
    const Tensor leaf = n.leaf();
    const AutogradMeta& m = autograd_meta(leaf);
    // By index: a hook may add another.
    for (size_t i = 0; i < m.hooks.size(); ++i) {
      const TensorHook hook = m.hooks[i];
      if (Tensor t = hook.call(grads[0]); t.defined()) grads[0] = t;
    }
  }
  static void retain(Tensor& kept, const Tensor& grad) {
    kept = kept.defined() ? ops::add(kept, grad) : ops::clone(grad);
  }
  template <class List>
  static List copied(Node& n, const List& list) {
    const std::lock_guard guard(n.lock);
    return list;
  }

  // In anomaly mode: says where a node that fails was made, and looks for NaN.
  void propagate_watched(Node& n, Gradients grads) {
    try {
      propagate(n, std::move(grads));
    } catch (...) {
      note_failed(n);
      throw;
    }
  }
  static void check_nan(const Node& n, const Gradients& out) {
    if (!anomaly_checks_nan.load(std::memory_order_relaxed)) return;
    const GradMode off(false);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].defined() || !is_differentiable(out[i].dtype()) || out[i].is_meta()) continue;
      const Tensor any = ops::any(ops::isnan(out[i]), std::nullopt);
      check(!*any.data<bool>(), "Function '", n.name(), "' returned nan values in its output ", i);
    }
  }

  void propagate(Node& n, Gradients grads) {
    run_tensor_hooks(n, grads);
    const bool hooked = n.has_hooks();
    if (hooked)
      for (const NodePreHook& h : copied(n, n.hooks().pre)) h.call(grads);
    const Gradients seen = hooked ? grads : Gradients();
    Gradients out = n.apply(std::move(grads));
    if (!options_.retain_graph) n.release_saved();
    if (hooked)
      for (const NodePostHook& h : copied(n, n.hooks().post)) h.call(out, seen);
    if (anomaly_enabled()) [[unlikely]]
      check_nan(n, out);
    if (!n.next.empty()) send(n, std::move(out));
  }

  void send(Node& n, Gradients out) {
    while (out.size() > n.next.size() && !out.back().defined()) out.pop_back();
    if (out.size() != n.next.size())
      throw Error(ErrorKind::Runtime, "Function ", n.name(),
                  " returned an incorrect number of gradients (expected ", n.next.size(), ", got ",
                  out.size(), ")");
    for (size_t i = 0; i < out.size(); ++i) {
      const Edge& e = n.next[i];
      if (!e) continue;
      Tensor g = fit(std::move(out[i]), e.node->outputs[e.output_nr], n, i);
      if (several_threads_) [[unlikely]] {
        const std::lock_guard guard(mutex_);
        deliver(e, std::move(g));
      } else {
        deliver(e, std::move(g));
      }
    }
  }
  void deliver(const Edge& e, Tensor g) {
    const uint32_t at = table_.find(e.node.get());
    if (g.defined()) add(at, e.output_nr, std::move(g));
    if (--table_[at].dependencies == 0) queue(at);
  }
  void add(uint32_t at, uint32_t output_nr, Tensor g) {
    Gradients& grads = table_[at].grads;
    if (grads.size() <= output_nr) grads.resize(output_nr + 1);
    Tensor& sum = grads[output_nr];
    sum = sum.defined() ? accumulate(std::move(sum), g) : std::move(g);
  }

 public:
  // Also where the run ends by an exception: what waits at the workers is not begun.
  void finish() {
    if (!several_threads_) return;
    std::unique_lock guard(mutex_);
    finished_ = true;
    wait(guard, [this] { return running_elsewhere_ == 0; });
  }

 private:
  const BackwardOptions options_;
  NodeTable table_;
  bool partial_ = false;  // for some inputs alone
  std::vector<Capture> captures_;
  Queue ready_{EarlierLast{&table_}};
  std::vector<std::function<void()>> callbacks_;

  // Where nodes run on several threads: under the mutex.
  bool several_threads_ = false;
  std::recursive_mutex mutex_;
  std::condition_variable_any wake_;
  int64_t outstanding_ = 0, running_elsewhere_ = 0;
  bool finished_ = false;
  CarriedError error_;
  const ThreadState state_ = thread_state;
  const std::shared_ptr<SavedTensorState> saved_state_ = saved_tensor_state();
  const Device owner_device_ = worker_device();
};

GraphTask& current_task() {
  check(here.task != nullptr, "this is possible only while a backward pass runs on this thread");
  return *here.task;
}

std::vector<Tensor> run_task(const std::vector<Edge>& roots, std::span<const Tensor> cotangents,
                             const std::vector<Edge>& inputs, const BackwardOptions& options) {
  const GradMode mode(options.create_graph);
  const auto task = std::make_shared<GraphTask>(options);
  struct Finish {
    GraphTask& task;
    ~Finish() { task.finish(); }
  } const finish{*task};
  task->run(roots, cotangents, inputs);
  return std::move(task->captured);
}

}  // namespace

Node* current_node() { return here.node; }
int64_t current_pass() { return here.task ? here.task->id : -1; }
bool current_pass_keeps_graph() { return current_task().keeps_graph(); }
bool current_pass_is_partial() { return here.task && here.task->partial(); }
std::vector<Tensor> gradient_buffers(Node& running) {
  check(here.task != nullptr && here.node == &running,
        "input_grad_buffers: can be read only while this node's backward runs");
  std::vector<Tensor> found = here.task->buffers(running);
  here.buffers_shown |= std::ranges::any_of(found, &Tensor::defined);
  return found;
}
bool pass_will_run(Node& n) { return current_task().will_run(n); }
void queue_callback(std::function<void()> callback) {
  check(here.task != nullptr, "queue_callback(): no backward pass runs on this thread");
  here.task->add_callback(std::move(callback));
}
bool multithreading_enabled() { return multithreading; }
void set_multithreading(bool on) { multithreading = on; }

std::vector<Tensor> run_backward(const std::vector<Edge>& roots, std::span<const Tensor> cotangents,
                                 const std::vector<Edge>& inputs, const BackwardOptions& options) {
  check(!here.buffers_shown,
        "backward() and grad() are not possible in a backward that has read input_grad_buffers");
  std::vector<Tensor> found;
  if (here.depth < max_depth)
    found = run_task(roots, cotangents, inputs, options);
  else
    run_on_fresh_thread([&] { found = run_task(roots, cotangents, inputs, options); });
  if (!options.allow_unused && !options.accumulate)
    for (size_t i = 0; i < found.size(); ++i)
      check(found[i].defined(), "grad(): the input at index ", i,
            " appears to not have been used in the graph (allow_unused=True gives None for it)");
  return found;
}

std::vector<Tensor> run_backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                 std::span<const Tensor> inputs, const BackwardOptions& options) {
  std::vector<Edge> from, to;
  for (size_t i = 0; i < roots.size(); ++i) {
    check(requires_grad(roots[i]), "element ", i,
          " of tensors does not require grad and does not have a grad_fn");
    from.push_back(gradient_edge(roots[i]));
  }
  for (const Tensor& t : inputs) {
    if (options.accumulate && !(is_leaf(t) && requires_grad(t))) retain_grad(t);
    check(requires_grad(t), "One of the differentiated Tensors does not require grad");
    to.push_back(gradient_edge(t));
  }
  return run_backward(from, cotangents, to, options);
}

}  // namespace facula
