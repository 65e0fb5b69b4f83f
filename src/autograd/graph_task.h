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

// What a thread does for the engine: the innermost pass and the node of it that runs.
struct EngineThread {
  GraphTask* task = nullptr;
  Node* node = nullptr;
  int depth = 0;               // passes inside passes
  bool buffers_shown = false;  // to the node that runs
};
extern thread_local constinit EngineThread engine_thread __attribute__((tls_model("initial-exec")));

// Nodes run in the order of their sequence, the latest first, each when all its gradients are
// there. Nodes of the CPU (and of the device whose worker asked) run on the thread that asked,
// others are jobs of their device's worker. With one thread nothing is locked; with several the
// mutex guards the table's gradients and counts, the queue, and the numbers below it. No operator
// and no hook runs under it.
class GraphTask : public std::enable_shared_from_this<GraphTask> {
 public:
  GraphTask(const BackwardOptions& options, std::span<const Edge> roots,
            std::span<const Edge> inputs);
  const int64_t id;
  std::vector<Tensor> captured;  // one for each input

  bool keeps_graph() const { return options_.retain_graph; }
  bool partial() const { return partial_; }
  bool will_run(const Node& n) const { return plan_.will_run(n); }
  void add_callback(std::function<void()> f);
  // Gradients that the receivers of n's gradients have so far and that may be added to in place.
  std::vector<Tensor> buffers(Node& n) const;

  // Runs the pass, then its callbacks.
  void run(std::span<const Edge> roots, std::span<const Tensor> cotangents);
  // At the end, also where run() raised: what waits at the workers is not begun, what they have
  // begun is waited for.
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

  // --- scheduling; what takes a guard is called with the mutex held where there are several
  // threads
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
  const bool partial_;  // for some inputs alone
  PassPlan plan_;
  Queue ready_{LatestFirst{&plan_.table}};
  std::vector<std::function<void()>> callbacks_;
  LeafStreams leaf_streams_;

  const uint32_t generation_ = fork_generation();
  const Device owner_device_ = worker_device();
  const bool several_threads_;
  std::optional<InheritedState> inherited_;  // where there are several threads
  std::mutex mutex_;
  std::condition_variable wake_;
  int64_t outstanding_ = 0, running_elsewhere_ = 0;
  bool finished_ = false;
  CarriedError error_;
};

}  // namespace facula
