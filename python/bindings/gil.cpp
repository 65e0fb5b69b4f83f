#include "gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace facula::python {
namespace {

struct Later {
  const ObjectCounted* counted;
  void (*release)(const ObjectCounted&);
};

// Memory that waits for the GIL is memory that backward cannot use again. While another thread has
// the GIL, it may be milliseconds until that gives way: then more may wait.
constexpr size_t most_bytes_when_free = size_t{1} << 20;
constexpr size_t most_bytes_when_held = size_t{64} << 20;
constexpr size_t most_waiting = 4096;

struct Waiting {
  int scopes = 0;  // DropGil scopes that this thread is in
  size_t bytes = 0;
  std::vector<Later> list;
};
thread_local Waiting waiting;

std::atomic<int> threads_without_gil{0};

// CPython made these two public in 3.13.
#if PY_VERSION_HEX >= 0x030D0000
PyThreadState* running_thread() { return PyThreadState_GetUnchecked(); }
bool interpreter_ends() { return Py_IsFinalizing(); }
#else
PyThreadState* running_thread() { return _PyThreadState_UncheckedGet(); }
bool interpreter_ends() { return _Py_IsFinalizing(); }
#endif

[[noreturn]] void stop_for_good() {
  for (;;) pause();
}

// CPython 3.11 ends a thread that wants the GIL of an interpreter that is ending by unwinding its
// stack, through destructors that must not throw. Later versions let it hang, and so do we.
template <class F>
auto taking_gil(F&& take) {
  if (!may_take_gil() && !holds_gil()) stop_for_good();
  try {
    return take();
  } catch (...) {  // nothing else is thrown there
    stop_for_good();
  }
}

void release_waiting() {
  // Releasing runs Python code, which may come back here.
  std::vector<Later> list;
  list.swap(waiting.list);
  waiting.bytes = 0;
  for (const Later& l : list) l.release(*l.counted);
  list.clear();
  if (waiting.list.empty()) waiting.list.swap(list);  // keeps the memory for the next time
}

}  // namespace

bool holds_gil() {
  // The state that this thread was last seen with. Another thread's may come to lie where it was:
  // then the id is another.
  struct Seen {
    PyThreadState* state;
    uint64_t id;
  };
  static thread_local constinit Seen seen __attribute__((tls_model("initial-exec"))) = {};
  PyThreadState* running = running_thread();
  if (!running) return false;
  if (running == seen.state && PyThreadState_GetID(running) == seen.id) return true;
  if (running != PyGILState_GetThisThreadState()) return false;
  seen = {running, PyThreadState_GetID(running)};
  return true;
}

bool may_take_gil() { return Py_IsInitialized() && !interpreter_ends(); }

HoldGil::HoldGil() : state_(taking_gil([] { return PyGILState_Ensure(); })) {
  if (!waiting.list.empty()) release_waiting();
}

PyThreadState* DropGil::let_go() {
  threads_without_gil.fetch_add(1, std::memory_order_relaxed);
  ++waiting.scopes;
  return PyEval_SaveThread();
}

void DropGil::take_back(PyThreadState* state) {
  taking_gil([state] {
    PyEval_RestoreThread(state);
    return true;
  });
  --waiting.scopes;
  threads_without_gil.fetch_sub(1, std::memory_order_relaxed);
  if (!waiting.list.empty()) release_waiting();
}

bool anyone_works_without_gil() { return threads_without_gil.load(std::memory_order_relaxed) > 0; }

void forget_threads_in_children() {
  pthread_atfork(nullptr, nullptr, [] { threads_without_gil.store(waiting.scopes); });
}

bool release_later(const ObjectCounted& c, size_t bytes, void (*release)(const ObjectCounted&)) {
  if (waiting.scopes == 0 || waiting.list.size() >= most_waiting) return false;
  const size_t most = running_thread() ? most_bytes_when_held : most_bytes_when_free;
  if (waiting.bytes + bytes > most) return false;
  waiting.list.push_back({&c, release});
  waiting.bytes += bytes;
  return true;
}

}  // namespace facula::python
