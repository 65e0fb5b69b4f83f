// What captured functions (_dynamo) compare at each call, for Python.
#include "bindings/modes/capture_bindings.h"

#include <string>

#include "autograd/variable.h"
#include "bindings/tensor/tensor_type.h"
#include "transforms/fake.h"
#include "transforms/interpreters.h"

namespace facula::python {
namespace {

// Collects plain values as bytes, which compare at once.
class Key {
 public:
  template <class T>
  Key& add(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <class... T>
  Key& add(T... values) {
    (add(values), ...);
    return *this;
  }
  Object object() const {
    return Object::take(
        PyBytes_FromStringAndSize(bytes_.data(), static_cast<Py_ssize_t>(bytes_.size())));
  }

 private:
  std::string bytes_;
};

const Tensor& tensor_argument(PyObject* o, const char* function) {
  check_type(is_tensor(o), function, "(): expected a Tensor; got ", type_name(o));
  return tensor_of(o);
}

// _capture_key(tensor): what a program that was made for a tensor depends on, but its class and
// whose memory it has. Offsets are not part of it: programs take views of any.
Object capture_key(PyObject*, PyObject* o) {
  const Tensor& t = tensor_argument(o, "_capture_key");
  Key key;
  key.add(t->dtype, t->device.type, t->device.index, t->layout, t->layers.bits(), t->ndim);
  key.add(bool{t->wrapped_number}, bool{t->inference}, bool{t->conj}, bool{t->neg});
  key.add(requires_grad(t), is_leaf(t), t->extension ? t->extension->kind : nullptr);
  key.add(t->storage && t->storage->nbytes() == 0);
  for (const int64_t n : t->sizes()) key.add(n);
  for (const int64_t n : t->strides()) key.add(n);
  return key.object();
}

// _capture_storage(tensor): the address of its storage's header.
Object capture_storage(PyObject*, PyObject* o) {
  return Object::take(PyLong_FromVoidPtr(tensor_argument(o, "_capture_storage")->storage.get()));
}

// _capture_modes(): all that changes the meaning of calls on this thread but their arguments.
Object capture_modes(PyObject*, PyObject*) {
  const ThreadState& s = thread_state;
  Key key;
  key.add(s.grad_enabled, s.inference, s.forward_grad_enabled, s.forward_levels, s.grad_level);
  key.add(current_level(), default_dtype(), s.default_device.type, s.default_device.index);
  key.add(s.autocast.enabled, s.autocast.cache_enabled);
  if (s.autocast.enabled)
    for (const DType d : s.autocast.dtype) key.add(d);
  return key.object();
}

// _fake_twin(fake): another fake tensor that is like one, over a storage of its own.
Object fake_twin(PyObject*, PyObject* o) {
  return wrapped(fake_like(tensor_argument(o, "_fake_twin")));
}

PyMethodDef functions[] = {
    {"_capture_key", guarded<capture_key>, METH_O, "What programs depend on in a tensor."},
    {"_capture_storage", guarded<capture_storage>, METH_O, "Whose memory a tensor has."},
    {"_capture_modes", guarded<capture_modes>, METH_NOARGS, "What calls depend on besides."},
    {"_fake_twin", guarded<fake_twin>, METH_O, "A fake tensor like another one."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_capture_functions(PyObject* module) { checked(PyModule_AddFunctions(module, functions)); }

}  // namespace facula::python
