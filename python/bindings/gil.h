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

 private:
  static PyThreadState* let_go();
  static void take_back(PyThreadState* state);
  PyThreadState* state_;
};

// Whether a thread is in a DropGil scope, and may change what C++ holds meanwhile. Does not change
// while the caller holds the GIL.
bool anyone_works_without_gil();
// A forked child has one thread: called once, so that it does not wait for those of its parent.
void forget_threads_in_children();

// Puts off releasing one reference to `c` until this thread holds the GIL again; false when it is
// not in a DropGil scope or has put off enough. `release` is called under the GIL.
bool release_later(const ObjectCounted& c, size_t bytes, void (*release)(const ObjectCounted&));

}  // namespace facula::python
