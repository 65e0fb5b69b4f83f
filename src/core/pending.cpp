#include "core/pending.h"

#include "core/threads.h"

namespace facula {

std::atomic<const PendingWork*> pending_work{nullptr};
constinit std::atomic<int> open_recorders{0};

namespace {
thread_local constinit bool computes __attribute__((tls_model("initial-exec"))) = false;
}  // namespace

bool computes_pending() { return computes || in_parallel_region(); }
ComputesPending::ComputesPending() : before_(computes) { computes = true; }
ComputesPending::~ComputesPending() { computes = before_; }

void compute_pending(const Storage& s) {
  if (const PendingWork* work = pending_work.load(std::memory_order_acquire)) work->compute(s);
}

uint32_t count_pending_references(const TensorImpl& t) {
  const PendingWork* work = pending_work.load(std::memory_order_acquire);
  return work ? work->references(t) : 0;
}

void finish_pending_work_slowly() {
  if (const PendingWork* work = pending_work.load(std::memory_order_acquire)) work->finish();
}

}  // namespace facula
