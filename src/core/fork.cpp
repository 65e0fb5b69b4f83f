#include "core/fork.h"

#include <pthread.h>

#include <utility>

#include "core/locks.h"

namespace facula {

constinit std::atomic<uint32_t> fork_generation_now{1};

// The list of handlers in lock order. It only grows, so that readers need no lock.
struct ForkHandlers {
  static void add(ForkHandler& h) noexcept {
    const std::lock_guard guard(adding);
    if (h.enlisted_.load(std::memory_order_relaxed)) return;
    if (!first.load(std::memory_order_relaxed))
      pthread_atfork(begin, go_on_in_parent, go_on_in_child);
    std::atomic<ForkHandler*>* at = &first;
    ForkHandler* after = at->load(std::memory_order_relaxed);
    while (after && after->order_ <= h.order_) {
      at = &after->next_;
      after = at->load(std::memory_order_relaxed);
    }
    h.next_.store(after, std::memory_order_relaxed);
    at->store(&h, std::memory_order_release);
    h.enlisted_.store(true, std::memory_order_release);
  }

 private:
  template <class F>
  static void each(F&& f) {
    for (ForkHandler* h = first.load(std::memory_order_acquire); h;
         h = h->next_.load(std::memory_order_acquire))
      f(*h);
  }
  // Forks of several threads run one after the other.
  static void begin() {
    forking.lock();
    each([](ForkHandler& h) {
      if (h.before_) h.before_(h);
      h.began_ = true;
    });
  }
  // A handler that was added after begin() has not run its first step.
  static void finish(const ForkHandler::Step ForkHandler::* step) {
    each([step](ForkHandler& h) {
      if (std::exchange(h.began_, false) && h.*step) (h.*step)(h);
    });
    forking.unlock();
  }
  static void go_on_in_parent() { finish(&ForkHandler::in_parent_); }
  static void go_on_in_child() {
    fork_generation_now.fetch_add(1, std::memory_order_relaxed);
    finish(&ForkHandler::in_child_);
  }

  static constinit std::mutex forking;
  static constinit SpinLock adding;
  static constinit std::atomic<ForkHandler*> first;
};
constinit std::mutex ForkHandlers::forking;
constinit SpinLock ForkHandlers::adding;
constinit std::atomic<ForkHandler*> ForkHandlers::first{nullptr};

void ForkHandler::enlist_now() noexcept { ForkHandlers::add(*this); }

}  // namespace facula
