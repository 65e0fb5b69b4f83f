// Extensions: what a tensor has beyond sizes, strides and a storage, such as a layout's parts.
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

// The properties that all tensors of one kind share. Kinds with a `dispatch_key`, such as sparse
// layouts, are registered, and calls are dispatched by them. The kinds of transforms and modes are
// plain constants beside their classes.
struct ExtensionKind {
  uint32_t size = sizeof(ExtensionKind);
  uint32_t version = 1;
#ifdef FACULA_RECORD_VARIANT
  uint64_t of_a_later_build = 0;
#endif
  const char* name = "";                 // unique, since pickles contain it
  const char* impl_name = "TensorImpl";  // in errors: "Cannot access storage of SparseTensorImpl"
  // "Sparse" gives "SparseCPU" in errors. Null: calls on this kind run as on strided tensors.
  const char* dispatch_key = nullptr;
  Layout layout = Layout::Strided;
  bool has_storage = true;  // whether the tensor's storage may be asked for
  bool quantized = false, nested = false;
  // Makes a tensor from the result of Extension::parts, for pickles and copies. May be null.
  Tensor (*from_parts)(const ExtensionKind& kind, IntSpan sizes, DType dtype, Device device,
                       const std::vector<Tensor>& parts) = nullptr;
  void* context = nullptr;  // for the registering library's use
  uint8_t id = 0;           // set on registration; 0: not registered
};

// Registers a copy of the kind, of which it reads `size` bytes, under a new id. RuntimeError when
// the name is taken or no id is left.
const ExtensionKind& register_extension_kind(const ExtensionKind& kind);
// By name; null where there is none.
const ExtensionKind* find_extension_kind(std::string_view name);
// The first registered kind with this layout, or null.
const ExtensionKind* kind_of_layout(Layout layout);
inline constexpr int most_extension_kinds = 64;

struct Extension {
  explicit Extension(const ExtensionKind& k) : kind(&k) {}
  virtual ~Extension() = default;
  Extension(const Extension&) = default;
  // A copy for another tensor over the same values, as detach() and alias() make.
  virtual Extension* clone() const = 0;
  // The geometry that a user sees. By default the sizes and numel of the TensorImpl; strides,
  // offset and contiguity raise RuntimeError if there is no storage.
  virtual IntVec sizes(const TensorImpl& t) const;
  virtual IntVec strides(const TensorImpl& t) const;
  virtual int64_t numel(const TensorImpl& t) const;
  // What repr() prints between "tensor(" and the dtype. If it is empty, the parts are printed.
  virtual std::string text(const TensorImpl& t) const;
  // Tensors that together hold all values; kind->from_parts makes the tensor from them again.
  virtual std::vector<Tensor> parts(const TensorImpl& t) const;

  const ExtensionKind* const kind;
};

}  // namespace facula
