#include "autograd/graph_task.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "autograd/run_node.h"
#include "core/interrupts.h"

namespace facula {

thread_local constinit EngineThread engine_thread __attribute__((tls_model("initial-exec"))) = {};

namespace {

constinit std::atomic<int64_t> next_pass{0};

// Sets the running task and node of this thread for a scope.
class Running {
 public:
  explicit Running(GraphTask* task) : before_(engine_thread) {
    engine_thread = {task, nullptr, before_.depth + 1, false};
  }
  ~Running() { engine_thread = before_; }
  Running(const Running&) = delete;

 private:
  const EngineThread before_;
};

}  // namespace

GraphTask::GraphTask(const BackwardOptions& options, std::span<const Edge> roots,
                     std::span<const Edge> inputs)
    : id(next_pass.fetch_add(1)),
      captured(inputs.size()),
      options_(options),
      partial_(!inputs.empty()),
      plan_(roots, inputs, options.accumulate),
      several_threads_(multithreading_enabled() && any_runs_elsewhere()) {
  if (several_threads_) inherited_.emplace();
}

void GraphTask::add_callback(std::function<void()> f) {
  const std::lock_guard guard(mutex_);
  callbacks_.push_back(std::move(f));
}

// Always undefined with several threads, since another thread may be adding to them.
std::vector<Tensor> GraphTask::buffers(Node& n) const {
  check(!options_.create_graph,
        "input_grad_buffers: the pass must not record a graph; got create_graph=True");
  check(!anomaly_enabled(), "input_grad_buffers: anomaly detection must be off");
  check(!n.has_hooks() || n.hooks().post.empty(),
        "input_grad_buffers: the node must have no post hooks");
  std::vector<Tensor> found(n.next.size());
  for (size_t i = 0; i < n.next.size() && !several_threads_; ++i) {
    const Edge& e = n.next[i];
    const uint32_t at = e ? plan_.table.find(e.node.get()) : NodeTable::none;
    if (at == NodeTable::none || e.output_nr >= plan_.table[at].grads.size()) continue;
    const Tensor& sum = plan_.table[at].grads[e.output_nr];
    if (may_add_to(sum)) found[i] = sum;
  }
  return found;
}

void GraphTask::run(std::span<const Edge> roots, std::span<const Tensor> cotangents) {
  const Running scope(this);
  start(roots, cotangents);
  if (several_threads_)
    work_with_others();
  else
    work_alone();
  leaf_streams_.rejoin();
  run_callbacks();
}

// Loops by index, since a callback may queue another.
void GraphTask::run_callbacks() {
  for (size_t i = 0; i < callbacks_.size(); ++i) {
    const std::function<void()> callback = std::move(callbacks_[i]);
    callback();
  }
}

void GraphTask::finish() {
  if (!several_threads_ || generation_ != fork_generation()) return;
  Guard held(mutex_);
  finished_ = true;
  wait(held, [this] { return running_elsewhere_ == 0; });
}

// --- scheduling

// The device of the node's first output; the CPU if it has none.
Device GraphTask::device_of(const Node& n) {
  const OutputMeta* m = first_output(n);
  return m ? m->device : Device();
}

bool GraphTask::runs_here(const Node& n) const {
  const Device d = device_of(n);
  return d.is_cpu() || d.is_meta() || d == owner_device_;
}

bool GraphTask::any_runs_elsewhere() {
  for (uint32_t i = 0; i < plan_.table.size(); ++i)
    if (!runs_here(*plan_.table[i].node)) return true;
  return false;
}

GraphTask::Guard GraphTask::guard() {
  check_process();
  return Guard(mutex_);
}

// Raises in a child that a hook forked: it has no workers, and one may have held the mutex.
void GraphTask::check_process() const {
  check(generation_ == fork_generation(),
        "backward(): this process was forked while the pass ran on several threads, which it has "
        "not got; begin another pass in the child");
}

// Stores the gradients of all roots before any node is queued.
void GraphTask::start(std::span<const Edge> roots, std::span<const Tensor> cotangents) {
  NodeTable& table = plan_.table;
  for (size_t i = 0; i < roots.size(); ++i) {
    Node& n = *roots[i].node;
    const OutputMeta& meta = n.outputs[roots[i].output_nr];
    Tensor& sum = sum_at(table.find(&n), roots[i].output_nr);
    Tensor g = fit(cotangents[i], meta, n, i);
    const GradientHandover stream(g, meta);
    sum = sum.defined() ? accumulate(std::move(sum), g) : std::move(g);
  }
  const Guard held = several_threads_ ? guard() : Guard();
  for (const Edge& r : roots) {
    const uint32_t at = table.find(r.node.get());
    if (table[at].dependencies == 0) queue(at);
  }
}

// Called with the mutex held if there are several threads.
void GraphTask::queue(uint32_t at) {
  NodeTable::State& s = plan_.table[at];
  if (s.queued || !(s.needed || s.captured)) return;
  s.queued = true;
  ++outstanding_;
  if (!several_threads_ || runs_here(*s.node)) {
    ready_.push(at);
    if (several_threads_) wake_.notify_all();
    return;
  }
  run_on_worker(device_of(*s.node),
                [task = shared_from_this(), at] { task->run_on_this_worker(at); });
}

uint32_t GraphTask::take_next() {
  const uint32_t at = ready_.top();
  ready_.pop();
  return at;
}

void GraphTask::work_alone() {
  InterruptPoll interrupt;  // kernels check for interrupts only if their tensors are large
  while (!ready_.empty()) {
    interrupt.step();
    evaluate(take_next());
  }
}

void GraphTask::work_with_others() {
  Guard held = guard();
  while (outstanding_ > 0 && !error_.any()) {
    if (ready_.empty()) {
      wait(held, [this] { return outstanding_ == 0 || error_.any() || !ready_.empty(); });
      continue;
    }
    const uint32_t at = take_next();
    held.unlock();
    evaluate_and_count(at);
    held = guard();
  }
  // Workers that are running a node still use this task.
  wait(held, [this] { return running_elsewhere_ == 0; });
  CarriedError error = std::move(error_);
  held.unlock();
  if (error.any()) error.rethrow();
}

template <class Condition>
void GraphTask::wait(Guard& held, Condition done) {
  if (done()) return;
  const WorkerWaits waits;
  wake_.wait(held, done);
}

void GraphTask::run_on_this_worker(uint32_t at) {
  {
    const Guard held(mutex_);
    if (error_.any() || finished_) return;
    ++running_elsewhere_;
  }
  {
    const InheritedState::Scope state(*inherited_);
    const Running scope(this);
    evaluate_and_count(at);
  }
  if (generation_ != fork_generation()) return;
  const Guard held(mutex_);
  --running_elsewhere_;
  wake_.notify_all();
}

void GraphTask::evaluate_and_count(uint32_t at) {
  CarriedError failure;
  try {
    evaluate(at);
  } catch (...) {
    failure.take();
  }
  if (generation_ != fork_generation()) return;
  const Guard held(mutex_);
  --outstanding_;
  if (failure.any() && !error_.any()) std::swap(error_, failure);
  wake_.notify_all();
}

// --- one node

void GraphTask::evaluate(uint32_t at) {
  NodeTable::State& s = plan_.table[at];
  Node& n = *s.node;
  Gradients grads = std::move(s.grads);
  if (grads.size() < n.outputs.size()) grads.resize(n.outputs.size());
  const NodeStream stream(n);
  if (s.captured || is_accumulator(n)) leaf_streams_.add(n);
  engine_thread.node = &n;
  if (s.captured) {
    if (!s.needed) run_tensor_hooks(n, grads);
    capture(at, grads);
  }
  if (s.needed) {
    Gradients out = run_node(n, std::move(grads), options_.retain_graph);
    if (!n.next.empty()) send(n, std::move(out));
  }
  engine_thread.node = nullptr;
  engine_thread.buffers_shown = false;
}

void GraphTask::capture(uint32_t at, const Gradients& grads) {
  for (const PassPlan::Capture& c : plan_.captures)
    if (c.node == at && c.output_nr < grads.size()) captured[c.index] = grads[c.output_nr];
}

void GraphTask::send(Node& n, Gradients out) {
  while (out.size() > n.next.size() && !out.back().defined()) out.pop_back();
  if (out.size() != n.next.size())
    throw Error(ErrorKind::Runtime, "Function ", n.name(),
                " returned an incorrect number of gradients (expected ", n.next.size(), ", got ",
                out.size(), ")");
  for (size_t i = 0; i < out.size(); ++i) {
    const Edge& e = n.next[i];
    if (!e) continue;
    Tensor g = fit(std::move(out[i]), e.node->outputs[e.output_nr], n, i);
    if (several_threads_) [[unlikely]]
      deliver_among_others(e, std::move(g));
    else
      deliver(e, std::move(g));
  }
}

Tensor& GraphTask::sum_at(uint32_t at, uint32_t output_nr) {
  Gradients& grads = plan_.table[at].grads;
  if (grads.size() <= output_nr) grads.resize(output_nr + 1);
  return grads[output_nr];
}

void GraphTask::deliver(const Edge& e, Tensor g) {
  const uint32_t at = plan_.table.find(e.node.get());
  if (g.defined()) {
    const GradientHandover stream(g, e.node->outputs[e.output_nr]);
    Tensor& sum = sum_at(at, e.output_nr);
    sum = sum.defined() ? accumulate(std::move(sum), g) : std::move(g);
  }
  if (--plan_.table[at].dependencies == 0) queue(at);
}

// Adds without holding the mutex: if there is a gradient already, takes it out, adds, and tries to
// store the sum again.
void GraphTask::deliver_among_others(const Edge& e, Tensor g) {
  const uint32_t at = plan_.table.find(e.node.get());
  const GradientHandover stream(g, e.node->outputs[e.output_nr]);
  Guard held = guard();
  while (g.defined()) {
    Tensor there = std::move(sum_at(at, e.output_nr));
    if (!there.defined()) {
      sum_at(at, e.output_nr) = std::move(g);
      break;
    }
    held.unlock();
    g = accumulate(std::move(there), g);
    held = guard();
  }
  if (--plan_.table[at].dependencies == 0) queue(at);
}

}  // namespace facula
