#include "queue.h"

#include <memory>
#include <thread>
#include <utility>

#include "facula/device.h"

namespace toy {

std::atomic<int> most_delay{300};
std::atomic<int64_t> events_alive{0};

namespace {

constexpr unsigned seed = 20260823;

std::atomic<int> errors[devices] = {};

// Never destroyed, like their threads: work may come until the process ends.
struct Queues {
  std::mutex mutex;
  std::deque<Queue> all;
  Queue* first[devices] = {};  // the default ones
};
Queues& queues() {
  static auto* q = new Queues;
  return *q;
}

}  // namespace

// --- queues

Queue::Queue(int i, int p)
    : index(i), priority(p), random_(seed + static_cast<unsigned>(queues().all.size())) {
  std::thread([this] { serve(); }).detach();
}

void Queue::give(Work work) {
  const std::lock_guard guard(mutex_);
  if (graph_) return graph_->push_back(std::move(work));
  work_.push_back(std::move(work));
  wake_.notify_one();
}

void Queue::serve() {
  std::unique_lock guard(mutex_);
  while (true) {
    wake_.wait(guard, [this] { return !work_.empty(); });
    const Work work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    const int delay = most_delay ? static_cast<int>(random_() % unsigned(most_delay)) : 0;
    guard.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
    work();
    guard.lock();
    busy_ = false;
    if (work_.empty()) done_.notify_all();
  }
}

void Queue::wait() {
  std::unique_lock guard(mutex_);
  done_.wait(guard, [this] { return work_.empty() && !busy_; });
}
bool Queue::is_done() {
  const std::lock_guard guard(mutex_);
  return work_.empty() && !busy_;
}
void Queue::begin_capture() {
  const std::lock_guard guard(mutex_);
  graph_ = new Graph;
}
Graph* Queue::end_capture() {
  const std::lock_guard guard(mutex_);
  return std::exchange(graph_, nullptr);
}

Queue& queue_of(int index, void* stream) {
  if (stream) return *static_cast<Queue*>(stream);
  Queues& q = queues();
  const std::lock_guard guard(q.mutex);
  if (!q.first[index]) q.first[index] = &q.all.emplace_back(index, 0);
  return *q.first[index];
}

void wait_for_device(int index) {
  std::vector<Queue*> mine;
  {
    const std::lock_guard guard(queues().mutex);
    for (Queue& q : queues().all)
      if (q.index == index) mine.push_back(&q);
  }
  for (Queue* q : mine) q->wait();
}

int take_error(int index) { return errors[index].exchange(0); }
void set_error(int index, int code) { errors[index] = code; }

// --- the entries of the table: streams

int create_stream(int index, int priority, void** stream) {
  const std::lock_guard guard(queues().mutex);
  *stream = &queues().all.emplace_back(index, priority);
  return 0;
}
int destroy_stream(int, void*) { return 0; }
int query_stream(int index, void* stream) {
  return queue_of(index, stream).is_done() ? take_error(index) : FACULA_DEVICE_NOT_READY;
}
int synchronize_stream(int index, void* stream) {
  queue_of(index, stream).wait();
  return take_error(index);
}
int priority_range(int* least, int* greatest) {
  *least = 0;
  *greatest = -2;
  return 0;
}

// --- events

int create_event(int, uint32_t, void** event) {
  ++events_alive;
  *event = new std::shared_ptr<Event>(new Event);
  return 0;
}
namespace {
// Work that waits for an event outlives the handle.
std::shared_ptr<Event> shared(void* handle) {
  return *static_cast<std::shared_ptr<Event>*>(handle);
}
void wait_until(Event& e, uint64_t count) {
  std::unique_lock guard(e.mutex);
  e.passed.wait(guard, [&] { return e.completed >= count; });
}
uint64_t latest(Event& e) {
  const std::lock_guard guard(e.mutex);
  return e.recorded;
}
}  // namespace

int destroy_event(int, void* event) {
  --events_alive;
  delete static_cast<std::shared_ptr<Event>*>(event);
  return 0;
}
int record_event(int index, void* event, void* stream) {
  const std::shared_ptr<Event> e = shared(event);
  uint64_t count;
  {
    const std::lock_guard guard(e->mutex);
    count = ++e->recorded;
  }
  queue_of(index, stream).give([e, count] {
    const std::lock_guard guard(e->mutex);
    e->completed = count;
    e->time = std::chrono::steady_clock::now();
    e->passed.notify_all();
  });
  return 0;
}
int wait_event(int index, void* event, void* stream) {
  const std::shared_ptr<Event> e = shared(event);
  queue_of(index, stream).give([e, count = latest(*e)] { wait_until(*e, count); });
  return 0;
}
int query_event(int, void* event) {
  const std::shared_ptr<Event> e = shared(event);
  const std::lock_guard guard(e->mutex);
  return e->completed >= e->recorded ? 0 : FACULA_DEVICE_NOT_READY;
}
int synchronize_event(int, void* event) {
  const std::shared_ptr<Event> e = shared(event);
  wait_until(*e, latest(*e));
  return 0;
}
int elapsed_time(int, void* start, void* end, double* milliseconds) {
  const std::chrono::duration<double, std::milli> d = shared(end)->time - shared(start)->time;
  *milliseconds = d.count();
  return 0;
}

// --- capture

int begin_capture(int index, void* stream) {
  queue_of(index, stream).begin_capture();
  return 0;
}
int end_capture(int index, void* stream, void** graph) {
  *graph = queue_of(index, stream).end_capture();
  return 0;
}
int replay_graph(int index, void* graph, void* stream) {
  for (const Work& work : *static_cast<Graph*>(graph)) queue_of(index, stream).give(work);
  return 0;
}
int destroy_graph(int, void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}

}  // namespace toy
