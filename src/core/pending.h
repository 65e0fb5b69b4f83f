// Work that a recorder has put off (graph/recorder.h), as the layers below it see it: storages
// whose contents are pending, and code that is about to look at or change memory by itself.
#pragma once
#include <atomic>
#include <cstdint>

namespace facula {

class Storage;
struct TensorImpl;

// Functions of the recorder.
struct PendingWork {
  void (*compute)(const Storage& s);  // the contents of a pending storage
  void (*finish)();                   // all that this thread has put off
  // How many references to a tensor what this thread has put off holds.
  uint32_t (*references)(const TensorImpl& t);
};
extern std::atomic<const PendingWork*> pending_work;
// The number of recorders that are open, on all threads.
extern constinit std::atomic<int> open_recorders;

// Whether this thread computes what is pending, or is a worker of one that may, so that it reaches
// memory whose contents are not there yet.
bool computes_pending();
class ComputesPending {
 public:
  ComputesPending();
  ~ComputesPending();
  ComputesPending(const ComputesPending&) = delete;

 private:
  const bool before_;
};

// Has the contents of a pending storage computed; it stays pending where that is not possible.
void compute_pending(const Storage& s);

uint32_t count_pending_references(const TensorImpl& t);
// The references to a tensor that are held only until put-off work runs.
inline uint32_t pending_references(const TensorImpl& t) {
  return open_recorders.load(std::memory_order_relaxed) > 0 ? count_pending_references(t) : 0;
}

void finish_pending_work_slowly();
// Runs what this thread has put off, before memory or geometry changes in a way that no operator
// tells of.
inline void finish_pending_work() {
  if (open_recorders.load(std::memory_order_relaxed) > 0) [[unlikely]]
    finish_pending_work_slowly();
}

}  // namespace facula
