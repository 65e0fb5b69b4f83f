// Memory for the arguments of one call (lists, complex numbers, texts), freed all at once.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "bindings/module/python.h"
#include "dispatch/value.h"

namespace facula::python {

class Arena {
 public:
  Arena() {}  // leaves room_ uninitialised, since zeroing it would cost more than most calls
  Arena(const Arena&) = delete;
  ~Arena() {
    for (Lists* l = lists_; l; l = l->next) {
      for (size_t i = 0; l->tensors && i < l->count; ++i) l->tensors[i].~Tensor();
      for (size_t i = 0; l->objects && i < l->count; ++i) Py_DECREF(l->objects[i]);
    }
    while (chunks_) ::operator delete(std::exchange(chunks_, chunks_->next));
  }

  // Uninitialised memory for n objects of a trivial type.
  template <class T>
  T* room(size_t n) {
    static_assert(alignof(T) <= 16);
    return static_cast<T*>(bytes(n * sizeof(T)));
  }
  // n undefined tensors, destroyed with the arena.
  Tensor* tensors(size_t n) {
    Tensor* t = room<Tensor>(n);
    for (size_t i = 0; i < n; ++i) new (t + i) Tensor;
    note({lists_, t, nullptr, n});
    return t;
  }
  // Keeps the objects of an array until the call is over, since their list may change meanwhile.
  PyObject* const* keep(PyObject** array, size_t n) {
    PyObject** kept = room<PyObject*>(n);
    for (size_t i = 0; i < n; ++i) kept[i] = Py_NewRef(array[i]);
    note({lists_, nullptr, kept, n});
    return kept;
  }
  // Keeps a tensor, or a Python object, until the call is over.
  const Tensor& keep(Tensor t) { return *tensors(1) = std::move(t); }
  PyObject* keep(Object o) {
    objects_.push_back(std::move(o));
    return objects_.back().get();
  }

 private:
  struct Chunk {
    Chunk* next;
    size_t padding;
  };
  struct Lists {
    Lists* next;
    Tensor* tensors;     // or null
    PyObject** objects;  // or null
    size_t count;
  };
  void note(const Lists& l) { lists_ = new (room<Lists>(1)) Lists(l); }
  void* bytes(size_t n) {
    n = (n + 15) & ~size_t{15};
    if (n <= sizeof room_ - used_) {
      void* p = room_ + used_;
      used_ += n;
      return p;
    }
    Chunk* c = static_cast<Chunk*>(::operator new(sizeof(Chunk) + n));
    c->next = chunks_;
    chunks_ = c;
    return c + 1;
  }

  alignas(16) std::byte room_[480];
  size_t used_ = 0;
  Chunk* chunks_ = nullptr;
  Lists* lists_ = nullptr;
  std::vector<Object> objects_;
};

}  // namespace facula::python
