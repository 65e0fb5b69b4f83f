// A backward pass while it runs.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>

#include "autograd/engine.h"
#include "autograd/inherited_state.h"
#include "autograd/pass_plan.h"
#include "autograd/stream_guard.h"
#include "autograd/workers.h"
#include "core/fork.h"

namespace facula {

class GraphTask;

// The state of one thread in the engine: its innermost pass and the node that is running.
struct EngineThread {
  GraphTask* task = nullptr;
  Node* node = nullptr;
  int depth = 0;               // of nested passes
  bool buffers_shown = false;  // whether the running node asked for gradient_buffers()
};
extern thread_local constinit EngineThread engine_thread __attribute__((tls_model("initial-exec")));

// A node runs when all its gradients have arrived; of several such nodes, the one made last runs
// first. CPU nodes run on the calling thread, as do nodes of a device if its worker is the caller;
// others run as jobs of their device's worker. With one thread nothing is locked. With several, the
// mutex guards the gradients and counts in the table, the queue, and the members below the mutex.
// No operator and no hook runs while it is held.
class GraphTask : public std::enable_shared_from_this<GraphTask> {
 public:
  GraphTask(const BackwardOptions& options, std::span<const Edge> roots,
            std::span<const Edge> inputs);
  const int64_t id;
  std::vector<Tensor> captured;  // the result: one gradient for each input

  bool keeps_graph() const { return options_.retain_graph; }
  bool partial() const { return partial_; }
  bool will_run(const Node& n) const { return plan_.will_run(n); }
  void add_callback(std::function<void()> f);
  // For gradient_buffers().
  std::vector<Tensor> buffers(Node& n) const;

  // Runs the pass, then its callbacks.
  void run(std::span<const Edge> roots, std::span<const Tensor> cotangents);
  // Called at the end, even if run() raised: cancels jobs that workers have not begun, and waits
  // for those that they have.
  void finish();

 private:
  struct LatestFirst {
    NodeTable* table;
    bool operator()(uint32_t a, uint32_t b) const {
      return (*table)[a].node->sequence < (*table)[b].node->sequence;
    }
  };
  using Queue = std::priority_queue<uint32_t, std::vector<uint32_t>, LatestFirst>;
  using Guard = std::unique_lock<std::mutex>;

  // --- scheduling; with several threads, functions that take a guard are called with the mutex
  // held
  static Device device_of(const Node& n);
  bool runs_here(const Node& n) const;
  bool any_runs_elsewhere();
  Guard guard();
  void check_process() const;
  void start(std::span<const Edge> roots, std::span<const Tensor> cotangents);
  void queue(uint32_t at);
  uint32_t take_next();
  void work_alone();
  void work_with_others();
  void run_on_this_worker(uint32_t at);
  void evaluate_and_count(uint32_t at);
  template <class Condition>
  void wait(Guard& guard, Condition done);
  void run_callbacks();

  // --- one node
  void evaluate(uint32_t at);
  void capture(uint32_t at, const Gradients& grads);
  void send(Node& n, Gradients out);
  void deliver(const Edge& e, Tensor g);
  void deliver_among_others(const Edge& e, Tensor g);
  Tensor& sum_at(uint32_t at, uint32_t output_nr);

  const BackwardOptions options_;
  const bool partial_;  // whether `inputs` were given
  PassPlan plan_;
  Queue ready_{LatestFirst{&plan_.table}};
  std::vector<std::function<void()>> callbacks_;
  LeafStreams leaf_streams_;

  const uint32_t generation_ = fork_generation();
  const Device owner_device_ = worker_device();
  const bool several_threads_;
  std::optional<InheritedState> inherited_;  // only with several threads
  std::mutex mutex_;
  std::condition_variable wake_;
  int64_t outstanding_ = 0, running_elsewhere_ = 0;
  bool finished_ = false;
  CarriedError error_;
};

}  // namespace facula
