// The tensor: sizes and strides over a storage, with what autograd and extensions attach to it.
#pragma once
#include <atomic>
#include <span>
#include <string>

#include "core/device.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/extension.h"
#include "core/layers.h"
#include "core/small_vector.h"
#include "core/storage.h"

namespace facula {

struct TensorImpl;
struct AutogradMeta;
class Tensor;

enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};

// Counts in-place changes; a view and its base share one.
struct VersionCounter : RefCounted {
  std::atomic<uint32_t> value{0};
};
inline void destroy(VersionCounter* v) { delete v; }

// A tensor's pointer to its shared version counter, which it gets when it is first shared. Of
// several threads that set one at once, the first wins.
class SharedVersion {
 public:
  SharedVersion() = default;
  SharedVersion(const SharedVersion&) = delete;
  ~SharedVersion() { *this = nullptr; }
  // Only while no other thread has the tensor.
  SharedVersion& operator=(Ref<VersionCounter> counter) {
    const auto before = Ref<VersionCounter>::take(counter_.load(std::memory_order_relaxed));
    counter_.store(counter.leak(), std::memory_order_relaxed);
    return *this;
  }
  VersionCounter* get() const { return counter_.load(std::memory_order_acquire); }
  explicit operator bool() const { return get() != nullptr; }
  bool operator==(const SharedVersion& o) const { return get() == o.get(); }
  // Sets the counter, unless another thread has already set one.
  void publish(Ref<VersionCounter> counter) {
    VersionCounter* none = nullptr;
    if (counter_.compare_exchange_strong(none, counter.get(), std::memory_order_acq_rel))
      counter.leak();
  }

 private:
  std::atomic<VersionCounter*> counter_{nullptr};  // owned
};

struct TensorImpl : ObjectCounted {
  static constexpr int inline_dims = 5;

  std::atomic<uint32_t> version{0};  // until it is shared; placed here, it costs no padding
  Ref<Storage> storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  LayerSet layers;
  DType dtype = DType::Float32;
  Device device;
  uint8_t ndim = 0;
  bool contiguous : 1 = true;
  bool wrapped_number : 1 = false;  // made from a Python number: weak in type promotion
  bool inference : 1 = false;
  bool conj : 1 = false;
  bool neg : 1 = false;
  Layout layout = Layout::Strided;
  SharedVersion shared_version;      // once a view or a saved alias exists
  AutogradMeta* autograd = nullptr;  // owned
  Extension* extension = nullptr;    // owned

  ~TensorImpl();
  IntSpan sizes() const { return {geometry(), ndim}; }
  IntSpan strides() const { return {geometry() + ndim, ndim}; }
  // Sets sizes and strides; recomputes numel and contiguity.
  void set_geometry(IntSpan sizes, IntSpan strides);
  void set_contiguous(IntSpan sizes);
  // The same for a new tensor with sizes from the user: RuntimeError for negative ones.
  void set_checked(IntSpan sizes);
  void copy_geometry(const TensorImpl& from);
  void copy_contiguous_geometry(const TensorImpl& from);
  uint32_t current_version() const {
    const VersionCounter* shared = shared_version.get();
    return (shared ? shared->value : version).load(std::memory_order_relaxed);
  }
  void bump_version() {
    if (VersionCounter* shared = shared_version.get())
      shared->value.fetch_add(1, std::memory_order_relaxed);
    else  // needs no atomic add: whichever of two racing writes wins, the version has changed
      set_version(version.load(std::memory_order_relaxed) + 1);
  }
  void set_version(uint32_t v) {
    VersionCounter* shared = shared_version.get();
    (shared ? shared->value : version).store(v, std::memory_order_relaxed);
  }
  // For new results: the kernel's own writes do not count as in-place changes.
  void reset_version() { set_version(0); }
  // The shared counter; made if there is none yet.
  Ref<VersionCounter> share_version();

 private:
  const int64_t* geometry() const { return ndim <= inline_dims ? inline_ : heap_; }
  int64_t* reserve(size_t dims);
  void refresh();
  bool set_plain(IntSpan sizes);
  bool set_plain(IntSpan sizes, IntSpan strides);
  union {
    int64_t inline_[2 * inline_dims];
    int64_t* heap_;
  };
};

// Neither scheme of keeping Python objects alive (refcount.h) may make tensors larger.
static_assert(sizeof(void*) != 8 || sizeof(TensorImpl) == 160);

void destroy(TensorImpl* t);
TensorImpl* new_tensor_impl();

// A handle that shares ownership of a TensorImpl; may be undefined.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  static Tensor share(TensorImpl* p) { return Tensor(Ref<TensorImpl>::share(p)); }

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl* get() const { return impl_.get(); }
  TensorImpl* operator->() const { return impl_.get(); }
  TensorImpl* leak() { return impl_.leak(); }
  void reset() { impl_.reset(); }
  bool is_same(const Tensor& o) const { return get() == o.get(); }

  int64_t dim() const { return impl_->ndim; }
  int64_t numel() const { return impl_->numel; }
  IntSpan sizes() const { return impl_->sizes(); }
  IntSpan strides() const { return impl_->strides(); }
  int64_t size(int64_t d) const;    // IndexError if there is no such dimension
  int64_t stride(int64_t d) const;  // likewise
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->device; }
  int64_t storage_offset() const { return impl_->offset; }
  size_t itemsize() const { return facula::itemsize(dtype()); }
  bool is_contiguous() const { return impl_->contiguous; }
  bool is_contiguous(MemoryFormat f) const;
  bool is_meta() const { return impl_->device.is_meta(); }
  // The address of the first element; raises if the storage has no memory.
  void* data() const {
    // Computed with integers, since the offset of an empty tensor may be anything.
    const auto base = reinterpret_cast<uintptr_t>(impl_->storage->data());
    return base ? reinterpret_cast<void*>(base + static_cast<uintptr_t>(impl_->offset) * itemsize())
                : nullptr;
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(data());
  }

 private:
  Ref<TensorImpl> impl_;
};

// --- making tensors without a call of an operator, for kernels, shape rules and bindings

// Uninitialised memory of the given geometry; strides are in elements.
Tensor empty_tensor(IntSpan sizes, DType dtype, Device device = {});
// The same for the geometry of a contiguous tensor.
Tensor empty_like_contiguous(const TensorImpl& like, DType dtype, Device device);
Tensor empty_strided_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
// The same on the CPU for contents that are computed later (core/pending.h); contiguous without
// strides.
Tensor pending_tensor(IntSpan sizes, const IntSpan* strides, DType dtype);
// A tensor of a registered extension kind, which owns `extension`. It has no memory of its own, and
// calls on it are dispatched to Layer::Layout.
Tensor layout_tensor(Extension* extension, IntSpan sizes, DType dtype, Device device);
// Another TensorImpl over the storage of `base`: same dtype, device, conjugate and negative bits;
// no autograd state.
Tensor alias_tensor(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t offset);
Tensor alias_tensor(const Tensor& base);
// A tensor over a storage; RuntimeError if it would reach outside of it.
Tensor tensor_over(Ref<Storage> storage, DType dtype, int64_t offset, IntSpan sizes,
                   IntSpan strides);

// --- properties as a user sees them, which an extension may override

// Whether calls on the tensor are dispatched by its extension kind.
inline bool has_layout_kind(const Tensor& t) { return t->layers.has(Layer::Layout); }
IntVec sizes_of(const Tensor& t);
IntVec strides_of(const Tensor& t);
int64_t numel_of(const Tensor& t);
// NotImplementedError, "Cannot access storage of SparseTensorImpl", if it has none.
const Ref<Storage>& storage_of(const Tensor& t);
// NotImplementedError that names `what` if the tensor is not strided.
void check_strided(const Tensor& t, const char* what);

// --- geometry

// A list of integers as the text "[2, 3]". It is formatted only when it is written, so that passing
// it to check() costs nothing unless the check fails.
struct ListText {
  IntSpan list;
  operator std::string() const;
};
std::ostream& operator<<(std::ostream& to, const ListText& text);
inline ListText str(IntSpan v) { return {v}; }
IntVec contiguous_strides(IntSpan sizes);
IntVec strides_for(IntSpan sizes, MemoryFormat f);
MemoryFormat suggested_format(const Tensor& t);  // ChannelsLast if its strides are in that order
// Strides for the result of an elementwise operator: dense, with the dimensions in the same order
// as in the inputs, as PyTorch does.
IntVec elementwise_strides(IntSpan sizes, std::span<const Tensor* const> inputs);
bool is_dense_non_overlapping(IntSpan sizes, IntSpan strides);
bool may_self_overlap(IntSpan sizes, IntSpan strides);
// Product of sizes; RuntimeError on a negative size or overflow.
int64_t checked_numel(IntSpan sizes);
// The number of elements from the first to the last that the geometry reaches; 0 when empty.
int64_t extent(IntSpan sizes, IntSpan strides);
int64_t wrap_unusual_dim(int64_t dim, int64_t ndim);  // the slow part of wrap_dim
// Maps a negative dimension into [0, ndim); IndexError with PyTorch's text if it is out of range. A
// tensor without dimensions counts as having one.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  return dim >= 0 && dim < ndim ? dim : wrap_unusual_dim(dim, ndim);
}
int64_t wrap_unusual_index(int64_t dim, int64_t ndim);  // the slow part of wrap_index
// As wrap_dim, but raises IndexError for a tensor without dimensions, which has no size to read.
inline int64_t wrap_index(int64_t dim, int64_t ndim) {
  return dim >= 0 && dim < ndim ? dim : wrap_unusual_index(dim, ndim);
}
inline int64_t Tensor::size(int64_t d) const { return sizes()[wrap_index(d, dim())]; }
inline int64_t Tensor::stride(int64_t d) const { return strides()[wrap_index(d, dim())]; }
// Broadcast of two shapes; RuntimeError with PyTorch's text when they do not fit.
IntVec broadcast_sizes(IntSpan a, IntSpan b);
inline bool same_sizes(IntSpan a, IntSpan b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}
// Whether two tensors share no elements, exactly the same ones, or some.
enum class Overlap : uint8_t { None, Full, Partial };
Overlap memory_overlap(const Tensor& a, const Tensor& b);

}  // namespace facula
