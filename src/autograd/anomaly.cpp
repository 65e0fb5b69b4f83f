#include "autograd/anomaly.h"

#include "autograd/node.h"
#include "dispatch/mutations.h"

namespace facula {

constinit std::atomic<bool> anomaly_on{false}, anomaly_checks_nan{true};
constinit std::atomic<const AnomalyHooks*> anomaly_hooks{nullptr};

void set_anomaly(bool on, bool check_nan) {
  const AnomalyHooks* h = anomaly_hooks.load(std::memory_order_acquire);
  source_line.store(on && h ? h->current_line : nullptr, std::memory_order_relaxed);
  anomaly_checks_nan.store(check_nan, std::memory_order_relaxed);
  anomaly_on.store(on, std::memory_order_relaxed);
}

void note_made(Node& n) {
  const AnomalyHooks* h = anomaly_hooks.load(std::memory_order_acquire);
  if (h && h->made) h->made(n, current_node());
}
void note_failed(Node& n) {
  const AnomalyHooks* h = anomaly_hooks.load(std::memory_order_acquire);
  if (h && h->failed) h->failed(n);
}
std::string forward_line(const Node& n) {
  const AnomalyHooks* h = anomaly_hooks.load(std::memory_order_acquire);
  return h && h->line ? h->line(n) : std::string();
}

}  // namespace facula
