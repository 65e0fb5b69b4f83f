// Calls of Python hooks on gradients.
#pragma once
#include <memory>

#include "autograd/node.h"
#include "bindings/tensor/tensor_type.h"

namespace facula::python {

// A Python object in a std::function. Copies take no GIL: the engine copies hooks under a lock that
// a thread with the GIL may wait for.
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
// The values of a dict of hooks as a list, so that a hook may change the dict.
Object hook_values(PyObject* hooks);
// Runs the hooks of a dict on one gradient; each may return another. Undefined: none did.
Tensor run_hooks(PyObject* hooks, const Tensor& grad);
// What a hook returned in place of gradients; nothing for None.
void replace_gradients(PyObject* hook, PyObject* returned, Gradients& grads);

Object ordered_dict();
// Puts a hook into a dict; the result is its RemovableHandle.
Object add_to(PyObject* hooks, PyObject* hook);

}  // namespace facula::python
