#include "bindings/module/gil.h"

#include <vector>

#include "bindings/module/python.h"
#include "core/forced_unwind.h"
#include "core/fork.h"
#include "core/interrupts.h"
#include "dispatch/running_calls.h"

#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace facula::python {
namespace {

struct Later {
  const ObjectCounted* counted;
  void (*release)(const ObjectCounted&);
};

// Limits for deferred releases, since backward cannot reuse their memory meanwhile. If another
// thread has the GIL, waiting for it may take milliseconds, so more may be deferred.
constexpr size_t most_bytes_when_free = size_t{1} << 20;
constexpr size_t most_bytes_when_held = size_t{64} << 20;
constexpr size_t most_waiting = 4096;

struct Waiting {
  int scopes = 0;              // open DropGil scopes of this thread
  bool heeds_signals = false;  // heed_signals() was called
  size_t bytes = 0;
  std::vector<Later> list;
};
thread_local Waiting waiting;

// Public in CPython since 3.13.
#if PY_VERSION_HEX >= 0x030D0000
PyThreadState* running_thread() { return PyThreadState_GetUnchecked(); }
bool interpreter_ends() { return Py_IsFinalizing(); }
#else
PyThreadState* running_thread() { return _PyThreadState_UncheckedGet(); }
bool interpreter_ends() { return _Py_IsFinalizing(); }
#endif

// CPython up to 3.13 unwinds the stack of a thread that asks for the GIL during shutdown; later
// versions block it for ever, and so do we (core/forced_unwind.h).
template <class F>
auto taking_gil(F&& take) {
  if (!may_take_gil() && !holds_gil()) stop_this_thread();
  return take();
}

void release_waiting() {
  // Releasing may run Python code, which may call this function again.
  std::vector<Later> list;
  list.swap(waiting.list);
  waiting.bytes = 0;
  for (const Later& l : list) l.release(*l.counted);
  list.clear();
  if (waiting.list.empty()) waiting.list.swap(list);  // reuses the memory of the list
}

// CPython runs signal handlers only on the main thread.
bool is_first_thread() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np() != 0;
#endif
}

// Whether the program has set no signal handlers written in Python.
bool has_plain_handlers() {
  constexpr int signals = 65;
  static PyObject* const get = imported("_signal", "getsignal").leak();
  static PyObject* const plain = imported("_signal", "default_int_handler").leak();
  for (int n = 1; n < signals; ++n) {
    const Object handler = Object::maybe(PyObject_CallFunction(get, "i", n));
    if (!handler) PyErr_Clear();  // this system has no such signal
    if (handler && PyCallable_Check(handler.get()) && handler.get() != plain) return false;
  }
  return true;
}

// Raises KeyboardInterrupt if the user pressed Ctrl-C. If the program has signal handlers of its
// own, they run only after the call, since they could change its tensors.
void ask_python() {
  if (!may_take_gil()) return;
  struct Gil {
    const PyGILState_STATE state = taking_gil([] { return PyGILState_Ensure(); });
    ~Gil() { PyGILState_Release(state); }
  };
  const Gil gil;
  if (!PyErr_Occurred() && has_plain_handlers() && PyErr_CheckSignals() < 0) throw_python();
}

}  // namespace

void heed_signals() {
  waiting.heeds_signals = true;
  if (is_first_thread()) interrupts.ask = ask_python;
}

bool holds_gil() {
  // This thread's Python thread state when last seen. Its address may be reused for another
  // thread's state, which has another id.
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
  unlocked_threads.fetch_add(1, std::memory_order_relaxed);
  ++waiting.scopes;
  if (!waiting.heeds_signals) [[unlikely]]
    heed_signals();
  return PyEval_SaveThread();
}

void DropGil::take_back(PyThreadState* state) {
  taking_gil([state] {
    PyEval_RestoreThread(state);
    return true;
  });
  --waiting.scopes;
  unlocked_threads.fetch_sub(1, std::memory_order_relaxed);
  if (!waiting.list.empty()) release_waiting();
}

bool anyone_works_without_gil() { return calls_may_race(); }

void keep_threads_from_unwinding() {
  must_not_unwind.store([] { return !may_take_gil(); }, std::memory_order_release);
}

void set_up_waits() {
  // A forked child has only one thread, so it must not count those of its parent.
  static constinit ForkHandler forks(ForkOrder::Python, nullptr, nullptr,
                                     [](ForkHandler&) { unlocked_threads.store(waiting.scopes); });
  forks.enlist();
  static constexpr InterpreterLock gil{
      []() -> void* { return holds_gil() ? DropGil::let_go() : nullptr; },
      [](void* state) { DropGil::take_back(static_cast<PyThreadState*>(state)); },
      [] { return !holds_gil() && taking_gil([] { return PyGILState_Ensure(), true; }); },
      [] { PyGILState_Release(PyGILState_UNLOCKED); }};
  interpreter_lock.store(&gil, std::memory_order_release);
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
