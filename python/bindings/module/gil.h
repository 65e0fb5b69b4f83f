// Acquiring and releasing the GIL, also while the interpreter shuts down, and deferring the release
// of Python objects until the GIL is held again.
#pragma once
#include <Python.h>

#include "core/refcount.h"

namespace facula::python {

// Whether this thread holds the GIL. Takes no lock; may be called after Py_Finalize.
bool holds_gil();
// Whether this thread may wait for the GIL. CPython ends threads that ask for it while the
// interpreter shuts down; code that only wants to release an object should leak it then.
bool may_take_gil();
// Whether Python objects can still be released here.
inline bool may_release() { return holds_gil() || may_take_gil(); }

// Holds the GIL for a scope, and releases objects whose release was deferred. If the interpreter is
// shutting down, the thread blocks here for ever.
class HoldGil {
 public:
  HoldGil();
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Releases the GIL for a scope, if `drop` is true.
class DropGil {
 public:
  explicit DropGil(bool drop) : state_(drop ? let_go() : nullptr) {}
  ~DropGil() {
    if (state_) take_back(state_);
  }
  DropGil(const DropGil&) = delete;

  // The two steps, for callers that cannot use a scope.
  static PyThreadState* let_go();
  static void take_back(PyThreadState* state);

 private:
  PyThreadState* state_;
};

// Whether any thread is in a DropGil scope, and so may change C++ objects now. The answer does not
// change while the caller holds the GIL.
bool anyone_works_without_gil();
// Called once at import: sets the hooks that release the GIL in waits of the library, and the fork
// handler.
void set_up_waits();
// Makes threads that ask for the GIL during shutdown stop instead of being unwound
// (core/forced_unwind.h).
void keep_threads_from_unwinding();

// Makes long calls on this thread run Python's signal handlers, if it is the thread that receives
// signals. Called at import, and when another thread first releases the GIL.
void heed_signals();

// Defers releasing one reference to `c` until this thread holds the GIL again, and then calls
// `release`. False if the thread is not in a DropGil scope or has deferred too much already.
bool release_later(const ObjectCounted& c, size_t bytes, void (*release)(const ObjectCounted&));

}  // namespace facula::python
