// Streams and events of the toy devices. Each stream is a thread that does its work late: after a
// short time that is random, from a seed.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <vector>

#include "memory.h"

namespace toy {

// Codes of this device; facula's own are negative.
enum Code { bad_index = 1, bad_handle = 2, illegal_access = 7 };

using Work = std::function<void()>;
using Graph = std::vector<Work>;

class Queue {
 public:
  Queue(int index, int priority);
  void give(Work work);
  // Blocks until all that was given so far is done.
  void wait();
  bool is_done();
  // Work is kept from now on, until the end gives it.
  void begin_capture();
  Graph* end_capture();

  const int index, priority;

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Work> work_;
  bool busy_ = false;
  Graph* graph_ = nullptr;
  std::mt19937 random_;
};

// A place in a queue's work: the latest record counts.
struct Event {
  std::mutex mutex;
  std::condition_variable passed;
  uint64_t recorded = 0, completed = 0;
  std::chrono::steady_clock::time_point time;
};

// The queue of a handle; the default one of a device for null.
Queue& queue_of(int index, void* stream);
// Waits for all queues of a device.
void wait_for_device(int index);
// The error of work that failed since it was last asked.
int take_error(int index);
void set_error(int index, int code);

int create_stream(int index, int priority, void** stream);
int destroy_stream(int index, void* stream);
int query_stream(int index, void* stream);
int synchronize_stream(int index, void* stream);
int priority_range(int* least, int* greatest);

int create_event(int index, uint32_t flags, void** event);
int destroy_event(int index, void* event);
int record_event(int index, void* event, void* stream);
int wait_event(int index, void* event, void* stream);
int query_event(int index, void* event);
int synchronize_event(int index, void* event);
int elapsed_time(int index, void* start, void* end, double* milliseconds);

int begin_capture(int index, void* stream);
int end_capture(int index, void* stream, void** graph);
int replay_graph(int index, void* graph, void* stream);
int destroy_graph(int index, void* graph);

// The longest time that work waits, in microseconds; 0 for none.
extern std::atomic<int> most_delay;
extern std::atomic<int64_t> events_alive;

}  // namespace toy
