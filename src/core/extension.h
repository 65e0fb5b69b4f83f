// Extensions: what a tensor is beyond geometry over memory, and the kinds of them.
#pragma once
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/layout.h"
#include "core/small_vector.h"

namespace facula {

struct TensorImpl;
class Tensor;

// What is common to all tensors of one kind. The kinds of transforms and modes are constants beside
// their classes; a kind that calls are dispatched by (it has a `dispatch_key`) is registered.
struct ExtensionKind {
  uint32_t size = sizeof(ExtensionKind);
  uint32_t version = 1;
#ifdef FACULA_RECORD_VARIANT
  uint64_t of_a_later_build = 0;
#endif
  const char* name = "";                 // unique: pickles name it
  const char* impl_name = "TensorImpl";  // in errors: "Cannot access storage of SparseTensorImpl"
  // "Sparse" gives "SparseCPU" in errors; null: tensors of this kind are called as strided ones.
  const char* dispatch_key = nullptr;
  Layout layout = Layout::Strided;
  bool has_storage = true;  // whether the tensor's storage may be asked for
  bool quantized = false, nested = false;
  // A tensor from what Extension::parts gave, for pickles and copies; null: it has none.
  Tensor (*from_parts)(const ExtensionKind& kind, IntSpan sizes, DType dtype, Device device,
                       const std::vector<Tensor>& parts) = nullptr;
  void* context = nullptr;  // the registering library's own
  uint8_t id = 0;           // set on registration; 0: not registered
};

// Copies the kind, as far as its `size` goes, and gives it a number. RuntimeError when the name is
// taken or no number is left.
const ExtensionKind& register_extension_kind(const ExtensionKind& kind);
// By name; null where there is none.
const ExtensionKind* find_extension_kind(std::string_view name);
// The registered kind that makes tensors of this layout, or null: the first that was registered.
const ExtensionKind* kind_of_layout(Layout layout);
inline constexpr int most_extension_kinds = 64;

struct Extension {
  explicit Extension(const ExtensionKind& k) : kind(&k) {}
  virtual ~Extension() = default;
  Extension(const Extension&) = default;
  // A copy for a new tensor header over the same thing (detach, alias).
  virtual Extension* clone() const = 0;
  // Geometry, asked where a user asks for it. By default the header's sizes and numel; strides,
  // offset and contiguity raise RuntimeError where there is no storage.
  virtual IntVec sizes(const TensorImpl& t) const;
  virtual IntVec strides(const TensorImpl& t) const;
  virtual int64_t numel(const TensorImpl& t) const;
  // What stands between "tensor(" and the dtype when it is printed; empty: its parts do.
  virtual std::string text(const TensorImpl& t) const;
  // Tensors that say everything about the values: kind->from_parts makes the tensor of them again.
  virtual std::vector<Tensor> parts(const TensorImpl& t) const;

  const ExtensionKind* const kind;
};

}  // namespace facula
