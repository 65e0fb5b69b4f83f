// Taking the GIL and letting go of it, also while the interpreter ends; and what threads that do
// not hold it put off until they do.
#pragma once
#include <Python.h>

#include "core/refcount.h"

namespace facula::python {

// Whether this thread holds the GIL; needs no lock, and may be asked after Py_Finalize.
bool holds_gil();
// Whether this thread may wait for the GIL. When the interpreter ends, CPython ends the threads
// that ask for it: whoever only has something to release leaves it to the process's end then.
bool may_take_gil();
// Whether Python objects can still be released here.
inline bool may_release() { return holds_gil() || may_take_gil(); }

// Holds the GIL for a scope, releasing what had to wait for it. A thread that asks for it while the
// interpreter ends stops for good.
class HoldGil {
 public:
  HoldGil();
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets go of the GIL for a scope, when `drop` says so.
class DropGil {
 public:
  explicit DropGil(bool drop) : state_(drop ? let_go() : nullptr) {}
  ~DropGil() {
    if (state_) take_back(state_);
  }
  DropGil(const DropGil&) = delete;

  // The two steps of a scope, for who cannot have one.
  static PyThreadState* let_go();
  static void take_back(PyThreadState* state);

 private:
  PyThreadState* state_;
};

// Whether a thread is in a DropGil scope, and may change what C++ holds meanwhile. Does not change
// while the caller holds the GIL.
bool anyone_works_without_gil();
// Called once: what the library's waits do with the GIL, and what a forked child forgets.
void set_up_waits();
// Lets threads that want the GIL of an interpreter that is ending stop where they are.
void keep_threads_from_unwinding();

// Lets Python's signal handlers run during long calls of the thread that they are for, if that is
// this one. Others than the importing thread see to it themselves when they first let go of the
// GIL.
void heed_signals();

// Puts off releasing one reference to `c` until this thread holds the GIL again; false when it is
// not in a DropGil scope or has put off enough. `release` is called under the GIL.
bool release_later(const ObjectCounted& c, size_t bytes, void (*release)(const ObjectCounted&));

}  // namespace facula::python
