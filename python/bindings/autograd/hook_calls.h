// Calls of Python hooks on gradients.
#pragma once
#include <memory>

#include "autograd/node.h"
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// A Python object held by a std::function. Copying it does not need the GIL, because the engine
// copies hooks under a lock for which a thread with the GIL may be waiting.
class Held {
 public:
  explicit Held(PyObject* o) : o_(Py_NewRef(o), let_go) {}
  PyObject* get() const { return o_.get(); }

 private:
  static void let_go(PyObject* o) {
    if (!may_release()) return;
    HoldGil gil;
    Py_DECREF(o);
  }
  std::shared_ptr<PyObject> o_;
};

// A tuple of gradients; None stands for an undefined one.
Object gradient_tuple(const Gradients& grads);
// The values of a dict of hooks as a list, since a hook may change the dict.
Object hook_values(PyObject* hooks);
// Runs the hooks of a dict on a gradient, which each may replace; undefined if none did.
Tensor run_hooks(PyObject* hooks, const Tensor& grad);
// Replaces the gradients by what a hook returned, unless that is None.
void replace_gradients(PyObject* hook, PyObject* returned, Gradients& grads);

Object ordered_dict();
// Puts a hook into a dict; the result is its RemovableHandle.
Object add_to(PyObject* hooks, PyObject* hook);

}  // namespace facula::python
