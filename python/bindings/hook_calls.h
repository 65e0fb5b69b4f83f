// Calls of Python hooks on gradients.
#pragma once
#include "autograd/node.h"
#include "tensor_type.h"

namespace facula::python {

// A Python object in a std::function: counted under the GIL.
class Held {
 public:
  explicit Held(PyObject* o) : o_(Py_NewRef(o)) {}
  Held(const Held& other) : o_(other.o_) {
    HoldGil gil;
    Py_INCREF(o_);
  }
  Held(Held&& other) noexcept : o_(std::exchange(other.o_, nullptr)) {}
  ~Held() {
    if (!o_ || !may_release()) return;
    HoldGil gil;
    Py_DECREF(o_);
  }
  Held& operator=(const Held&) = delete;
  PyObject* get() const { return o_; }

 private:
  PyObject* o_;
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
