// Functionalization: a program that changes tensors in place is run as one that does not.
//
// A functional tensor wraps a value and belongs to a functional storage, which it shares with its
// views. The storage keeps the value of its base; an in-place change of any of them makes a new
// base value out of the old one, and the others, being out of date, are cut from it again when
// used.
#pragma once
#include <memory>

#include "core/autograd_meta.h"
#include "dispatch/call.h"
#include "transforms/inner_mode.h"

namespace facula {

// One step from a base to a view of it, which works in both directions.
struct ViewStep {
  enum class Kind : uint8_t { Strided, Conjugate, Negative, AsReal, AsComplex, Bits };
  Kind kind = Kind::Strided;
  IntVec sizes, strides;  // of Strided; the offset is relative to the base's
  int64_t offset = 0;
  DType dtype = DType::Undefined, base_dtype = DType::Undefined;  // of Bits
  bool copies = false;  // the view is a copy, taken by the view's copying form

  // `as_copy`: where views are copies; otherwise a view in any case.
  Tensor view_of(const Tensor& base, bool as_copy = true) const;
  // The base with the view's elements replaced.
  Tensor put_into(const Tensor& base, const Tensor& view) const;
};

struct FunctionalStorage {
  explicit FunctionalStorage(const Tensor& value);
  ~FunctionalStorage();
  FunctionalStorage(const FunctionalStorage&) = delete;

  Tensor base;
  const Tensor original;   // the first base: what is there again when the storage is emptied
  int64_t generation = 0;  // counts changes of values
  bool values_changed = false, size_changed = false;
  bool unset = false;           // grown from nothing, and not written to yet
  const Ref<Storage> identity;  // what the wrappers show as their storage: a size without memory

  bool emptied() const { return identity->nbytes() == 0 && base.numel() > 0; }
  // The base's value; RuntimeError while the storage has no bytes.
  const Tensor& value();
  // The base, whether or not there are bytes: for what asks for geometry alone.
  const Tensor& shape();
  void resize(size_t bytes);
};
// The functional storage that shows itself as `identity`; null where that is memory.
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
  std::vector<ViewStep> steps;  // from the base to this tensor; none: the base itself
  Tensor value;
  int64_t generation;
  bool geometry_changed = false;
  bool replaced = false;  // lies over another storage than it was made over

  // The value, cut anew where the storage was changed since. RuntimeError while the storage has no
  // bytes, unless the values are not asked for.
  const Tensor& up_to_date(bool with_values = true);
  void write(const Tensor& fresh);
};
FunctionalTensor* functional_part(const Tensor& t);

// A functional tensor over a value that nobody else holds.
Tensor make_functional(const Tensor& value);
// Functional tensors for the inputs of a function; inputs over one storage share a functional one.
// Gradients pass through to the inputs.
std::vector<Tensor> make_functional_inputs(std::span<const Tensor> inputs);
// The value of a functional tensor; any other tensor as it is.
Tensor from_functional(const Tensor& t);
// The same with the history of the functional tensor, over a storage of the size that its has.
Tensor leave_functional(const Tensor& t);
// Carries what happened to the functional tensors back to the inputs they were made of. Resized
// says: for those whose storage has another size now; the others are left alone.
enum class WriteBack : uint8_t { All, Resized };
void write_back(std::span<const Tensor> inputs, std::span<const Tensor> functional,
                WriteBack what = WriteBack::All);

bool any_functional(const OpCall& c);
// A call on functional tensors whose mode has ended (a backward pass, say): runs on their values.
void run_after_functionalization(OpCall& c);

// The mode: replaces in-place and out= variants, and regenerates views; with `copy_views` each view
// becomes a copy as well.
struct FunctionalizeMode final : InnerMode {
  explicit FunctionalizeMode(bool copies = false) : copy_views(copies) {}
  void handle(OpCall& c) override;
  const bool copy_views;
};

}  // namespace facula
