// Functionalization: runs a program with in-place changes as one without.
//
// A functional tensor wraps a value, an ordinary tensor, and shares a functional storage with its
// views. The storage holds the value of their base. An in-place change computes a new value of the
// base from the old one; the other views are then out of date, and are computed from the new base
// when they are next used.
#pragma once
#include <memory>

#include "core/autograd_meta.h"
#include "dispatch/call.h"
#include "transforms/inner_mode.h"
#include "transforms/view_step.h"

namespace facula {

struct FunctionalStorage {
  explicit FunctionalStorage(const Tensor& value);
  ~FunctionalStorage();
  FunctionalStorage(const FunctionalStorage&) = delete;

  Tensor base;
  const Tensor original;   // the first base, restored when the storage is resized to 0 bytes
  int64_t generation = 0;  // incremented by each change of values
  bool values_changed = false, size_changed = false;
  bool unset = false;           // grown from 0 bytes and not written to yet
  const Ref<Storage> identity;  // the storage that the wrappers show: a size without memory

  bool emptied() const { return identity->nbytes() == 0 && base.numel() > 0; }
  // The value of the base; RuntimeError while the storage has 0 bytes.
  const Tensor& value();
  // The same for uses of its geometry alone, which also work with 0 bytes.
  const Tensor& shape();
  void resize(size_t bytes);
};
// The functional storage with this `identity`; null for an ordinary storage.
std::shared_ptr<FunctionalStorage> functional_storage(const Storage* identity);

extern const ExtensionKind functional_kind;
struct FunctionalTensor final : Extension {
  FunctionalTensor(std::shared_ptr<FunctionalStorage> s, Tensor v)
      : Extension(functional_kind),
        storage(std::move(s)),
        value(std::move(v)),
        generation(storage->generation) {}
  Extension* clone() const override { return new FunctionalTensor(*this); }

  std::shared_ptr<FunctionalStorage> storage;
  std::vector<ViewStep> steps;  // from the base to this tensor; empty for the base itself
  Tensor value;
  int64_t generation;
  bool geometry_changed = false;
  bool replaced = false;  // set_() or .data gave it another storage

  // The value, computed again from the base if the storage has changed. RuntimeError while the
  // storage has 0 bytes, unless `with_values` is false.
  const Tensor& up_to_date(bool with_values = true);
  void write(const Tensor& fresh);
};
FunctionalTensor* functional_part(const Tensor& t);

// A functional tensor with a functional storage of its own; nobody else may hold the value.
Tensor make_functional(const Tensor& value);
// Functional tensors for the inputs of a function; inputs over one storage share a functional
// storage. Gradients pass through to the inputs.
std::vector<Tensor> make_functional_inputs(std::span<const Tensor> inputs);
// The value of a functional tensor; any other tensor is returned unchanged.
Tensor from_functional(const Tensor& t);
// The same, with the grad_fn of the functional tensor and a storage of the same size as its own.
Tensor leave_functional(const Tensor& t);
// Applies the changes of functional tensors to the inputs that they were made from. With Resized,
// only to those whose storage has changed its size.
enum class WriteBack : uint8_t { All, Resized };
void write_back(std::span<const Tensor> inputs, std::span<const Tensor> functional,
                WriteBack what = WriteBack::All);

bool any_functional(const OpCall& c);
// Runs a call on the values of functional tensors whose mode has ended, as in a backward pass.
void run_after_functionalization(OpCall& c);

// The mode: replaces in-place and out= variants by functional ones, and tracks views. With
// `copy_views` view operators are replaced by their copying forms too.
struct FunctionalizeMode final : InnerMode {
  explicit FunctionalizeMode(bool copies = false) : copy_views(copies) {}
  void handle(OpCall& c) override;
  const bool copy_views;
};

}  // namespace facula
