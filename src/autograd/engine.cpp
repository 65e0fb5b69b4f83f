#include "autograd/engine.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/graph_task.h"

namespace facula {
namespace {

// How many passes may be nested on one thread; the next one runs on a new thread.
constexpr int max_depth = 60;

GraphTask& current_task() {
  check(engine_thread.task != nullptr,
        "this is possible only while a backward pass runs on this thread");
  return *engine_thread.task;
}

std::vector<Tensor> run_task(std::span<const Edge> roots, std::span<const Tensor> cotangents,
                             std::span<const Edge> inputs, const BackwardOptions& options) {
  const GradMode mode(options.create_graph);
  const auto task = std::make_shared<GraphTask>(options, roots, inputs);
  struct Finish {
    GraphTask& task;
    ~Finish() { task.finish(); }
  } const finish{*task};
  task->run(roots, cotangents);
  return std::move(task->captured);
}

}  // namespace

Node* current_node() { return engine_thread.node; }
int64_t current_pass() { return engine_thread.task ? engine_thread.task->id : -1; }
bool current_pass_keeps_graph() { return current_task().keeps_graph(); }
bool current_pass_is_partial() { return engine_thread.task && engine_thread.task->partial(); }
bool pass_will_run(Node& n) { return current_task().will_run(n); }

std::vector<Tensor> gradient_buffers(Node& running) {
  EngineThread& here = engine_thread;
  check(here.task != nullptr && here.node == &running,
        "input_grad_buffers: can be read only while this node's backward runs");
  std::vector<Tensor> found = here.task->buffers(running);
  here.buffers_shown |= std::ranges::any_of(found, &Tensor::defined);
  return found;
}

void queue_callback(std::function<void()> callback) {
  check(engine_thread.task != nullptr, "queue_callback(): no backward pass runs on this thread");
  engine_thread.task->add_callback(std::move(callback));
}

bool multithreading_enabled() { return thread_state.multithreading; }
void set_multithreading(bool on) { thread_state.multithreading = on; }

std::vector<Tensor> run_backward(const std::vector<Edge>& roots, std::span<const Tensor> cotangents,
                                 const std::vector<Edge>& inputs, const BackwardOptions& options) {
  check(!engine_thread.buffers_shown,
        "backward() and grad() are not possible in a backward that has read input_grad_buffers");
  std::vector<Tensor> found;
  if (engine_thread.depth < max_depth)
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
