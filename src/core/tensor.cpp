#include "core/tensor.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "core/allocator.h"
#include "core/autograd_meta.h"
#include "core/checked.h"
#include "core/device_allocator.h"
#include "core/holders.h"

namespace facula {

namespace {
thread_local constinit bool working __attribute__((tls_model("initial-exec"))) = false;
thread_local constinit GraphNode* waiting __attribute__((tls_model("initial-exec"))) = nullptr;
}  // namespace

void destroy(GraphNode* n) {
  if (n->kept_by_leaf()) return n->on_unreferenced();
  // Nested calls only add to the list; the outermost call on the thread destroys what is in it.
  if (working) {
    n->next_dying = waiting;
    waiting = n;
    return;
  }
  working = true;
  delete n;
  while (GraphNode* next = waiting) {
    waiting = next->next_dying;
    delete next;
  }
  working = false;
}

TensorImpl* new_tensor_impl() { return new (cpu_allocate(sizeof(TensorImpl))) TensorImpl; }

void destroy(TensorImpl* t) {
  t->~TensorImpl();
  cpu_free(t, sizeof(TensorImpl));
}

void empty_tangent(const Ref<Tangent>& t) {
  static constinit ForkSafeMutex lock(ForkOrder::Tangents);
  Tensor last;  // freed after unlocking, since that may empty other tangents
  std::lock_guard hold(lock);
  std::swap(last, t->value);
}

TensorImpl::~TensorImpl() {
  if (autograd) {
    if (autograd->retains_grad && autograd->grad_fn) autograd->grad_fn->forget(this);
    delete autograd;
  }
  if (extension) delete extension;
  if (ndim > inline_dims) delete[] heap_;
}

int64_t* TensorImpl::reserve(size_t dims) {
  check(dims <= 64, "expected at most 64 dimensions; got ", dims);
  if (ndim != dims) {
    if (ndim > inline_dims) delete[] heap_;
    ndim = 0;
    if (dims > inline_dims) heap_ = new int64_t[2 * dims];
    ndim = static_cast<uint8_t>(dims);
  }
  return ndim <= inline_dims ? inline_ : heap_;
}

void TensorImpl::refresh() {
  const IntSpan n = sizes(), s = strides();
  int64_t expected = 1;
  bool plain = true;
  for (int d = ndim - 1; d >= 0; --d) {
    if (n[d] != 1 && s[d] != expected) plain = false;
    // For an empty tensor, products of some of its sizes may overflow.
    expected = wrapping_mul(expected, n[d]);
  }
  numel = expected;
  contiguous = plain || numel == 0;
}

// A fast path for new tensors with few dimensions, none of them empty: sets everything in one pass.
// Returns false if it does not apply. The spans must not point into this object.
bool TensorImpl::set_plain(IntSpan n) {
  const size_t dims = n.size();
  if (ndim != 0 || dims > inline_dims) return false;
  int64_t step = 1;
  for (size_t d = dims; d-- > 0;) {
    inline_[d] = n[d];
    inline_[dims + d] = step;
    if (n[d] <= 0 || __builtin_mul_overflow(step, n[d], &step)) return false;
  }
  ndim = static_cast<uint8_t>(dims);
  numel = step;
  contiguous = true;
  return true;
}

bool TensorImpl::set_plain(IntSpan n, IntSpan s) {
  const size_t dims = n.size();
  if (ndim != 0 || dims > inline_dims) return false;
  int64_t product = 1;
  bool in_order = true;
  for (size_t d = dims; d-- > 0;) {
    inline_[d] = n[d];
    inline_[dims + d] = s[d];
    in_order &= n[d] == 1 || s[d] == product;
    if (n[d] <= 0 || __builtin_mul_overflow(product, n[d], &product)) return false;
  }
  ndim = static_cast<uint8_t>(dims);
  numel = product;
  contiguous = in_order;
  return true;
}

void TensorImpl::set_geometry(IntSpan n, IntSpan s) {
  if (set_plain(n, s)) return;
  const IntVec keep_n(n), keep_s(s);  // the spans may point into this object
  checked_product(keep_n, "numel");
  int64_t* g = reserve(n.size());
  for (size_t d = 0; d < keep_n.size(); ++d) {
    g[d] = keep_n[d];
    g[ndim + d] = keep_s[d];
  }
  refresh();
}

void TensorImpl::set_checked(IntSpan n) {
  if (set_plain(n)) return;
  checked_numel(n);
  set_contiguous(n);
}

void TensorImpl::set_contiguous(IntSpan n) {
  if (set_plain(n)) return;
  const size_t dims = n.size();
  if (dims <= inline_dims && ndim <= inline_dims && n.data() != inline_) {
    ndim = static_cast<uint8_t>(dims);
    int64_t step = 1, below = 1;
    for (size_t d = dims; d-- > 0;) {
      step = checked_mul(step, below, "Stride calculation");
      inline_[d] = n[d];
      inline_[dims + d] = step;
      below = std::max<int64_t>(n[d], 1);
    }
    numel = checked_product(n, "numel");
    contiguous = true;
    return;
  }
  set_geometry(n, contiguous_strides(n));
}

void TensorImpl::copy_contiguous_geometry(const TensorImpl& from) {
  // A dimension of size 1 may have any stride; a new tensor gets the contiguous one.
  if (from.ndim == 1 && ndim <= 1) {
    ndim = 1;
    inline_[0] = from.sizes()[0];
    inline_[1] = 1;
    numel = from.numel;
    contiguous = true;
    return;
  }
  set_contiguous(from.sizes());
}

void TensorImpl::copy_geometry(const TensorImpl& from) {
  int64_t* g = reserve(from.ndim);
  std::copy_n(from.geometry(), 2 * size_t{from.ndim}, g);
  numel = from.numel;
  contiguous = from.contiguous;
}

Ref<VersionCounter> TensorImpl::share_version() {
  if (!shared_version) {
    const auto made = Ref<VersionCounter>::take(new VersionCounter);
    made->value.store(version.load(std::memory_order_relaxed), std::memory_order_relaxed);
    shared_version.publish(made);
  }
  return Ref<VersionCounter>::share(shared_version.get());
}

bool Tensor::is_contiguous(MemoryFormat f) const {
  if (f == MemoryFormat::Contiguous) return is_contiguous();
  const int64_t wanted = f == MemoryFormat::ChannelsLast ? 4 : 5;
  if (dim() != wanted) return false;
  const IntVec s = strides_for(sizes(), f);
  for (int d = 0; d < dim(); ++d)
    if (sizes()[d] != 1 && strides()[d] != s[d]) return false;
  return true;
}

namespace {
void describe_large(const TensorImpl& t) {
  if (t.storage->nbytes() <= holder_bytes || t.device.is_meta()) [[likely]]
    return;
  if (t.device.is_cpu())
    describe_block(t.storage->data(), t.dtype, t.sizes());
  else
    describe_device_block(t.device, t.storage->data(), t.dtype, t.sizes());
}
}  // namespace

namespace {
// Quantized dtypes have no element size here: their tensors are made over integers.
[[noreturn]] void no_plain_tensor_of(DType dtype) {
  throw Error(ErrorKind::Runtime, "a tensor of dtype ", name(dtype),
              " needs a scale and a zero point: quantize_per_tensor() and its kin make it");
}
}  // namespace

Tensor empty_tensor(IntSpan sizes, DType dtype, Device device) {
  if (!itemsize(dtype)) [[unlikely]]
    no_plain_tensor_of(dtype);
  TensorImpl* t = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(t));
  t->set_checked(sizes);
  int64_t bytes;
  check(!__builtin_mul_overflow(t->numel, static_cast<int64_t>(itemsize(dtype)), &bytes),
        "Storage size calculation overflowed with sizes=", str(sizes));
  t->storage = Storage::make(device, static_cast<size_t>(bytes));
  t->dtype = dtype;
  t->device = t->storage->device();
  t->layers = backend_layer(device.type);
  describe_large(*t);
  return owner;
}

Tensor empty_like_contiguous(const TensorImpl& like, DType dtype, Device device) {
  if (!itemsize(dtype)) [[unlikely]]
    no_plain_tensor_of(dtype);
  const size_t bytes = static_cast<size_t>(like.numel) * itemsize(dtype);
  check(like.numel <= PTRDIFF_MAX / 16,
        "Storage size calculation overflowed with sizes=", str(like.sizes()));
  Ref<Storage> storage = Storage::make(device, bytes);
  TensorImpl* t = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(t));
  t->storage = std::move(storage);
  t->dtype = dtype;
  t->device = t->storage->device();
  t->layers = backend_layer(device.type);
  t->copy_contiguous_geometry(like);
  describe_large(*t);
  return owner;
}

Tensor empty_strided_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  check(sizes.size() == strides.size(),
        "as_strided(): sizes and strides must have the same length; got ", str(sizes), " and ",
        str(strides));
  checked_numel(sizes);
  for (int64_t s : strides)
    check(s >= 0, "as_strided(): strides must not be negative; got ", str(strides));
  const int64_t n = extent(sizes, strides);
  Tensor t = empty_tensor(IntSpan(&n, 1), dtype, device);
  t->set_geometry(sizes, strides);
  describe_large(*t.get());
  return t;
}

Tensor pending_tensor(IntSpan sizes, const IntSpan* strides, DType dtype) {
  if (!itemsize(dtype)) [[unlikely]]
    no_plain_tensor_of(dtype);
  TensorImpl* t = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(t));
  t->set_checked(sizes);
  if (strides) t->set_geometry(sizes, *strides);
  const int64_t n = strides ? extent(sizes, *strides) : t->numel;
  int64_t bytes;
  check(!__builtin_mul_overflow(n, static_cast<int64_t>(itemsize(dtype)), &bytes),
        "Storage size calculation overflowed with sizes=", str(sizes));
  t->storage = Storage::pending(static_cast<size_t>(bytes));
  t->dtype = dtype;
  t->layers = Layer::CPU;
  return owner;
}

Tensor alias_tensor(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t offset) {
  TensorImpl* t = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(t));
  t->storage = base->storage;
  t->offset = offset;
  t->dtype = base->dtype;
  t->device = base->device;
  t->layout = base->layout;
  t->layers = base->layers - LayerSet(Layer::Autograd);
  t->conj = base->conj;
  t->neg = base->neg;
  t->set_geometry(sizes, strides);
  if (base->extension) t->extension = base->extension->clone();
  return owner;
}

Tensor alias_tensor(const Tensor& base) {
  return alias_tensor(base, base.sizes(), base.strides(), base.storage_offset());
}

Tensor tensor_over(Ref<Storage> storage, DType dtype, int64_t offset, IntSpan sizes,
                   IntSpan strides) {
  check(sizes.size() == strides.size(), "expected as many strides as sizes; got sizes ", str(sizes),
        " and strides ", str(strides));
  checked_numel(sizes);
  for (int64_t s : strides)
    check(s >= 0, "expected strides that are not negative; got ", str(strides));
  check(offset >= 0, "expected a storage offset that is not negative; got ", offset);
  if (!itemsize(dtype)) no_plain_tensor_of(dtype);
  const int64_t reach = extent(sizes, strides);
  int64_t last, bytes;
  const bool fits = !__builtin_add_overflow(reach, offset, &last) &&
                    !__builtin_mul_overflow(last, static_cast<int64_t>(itemsize(dtype)), &bytes) &&
                    (reach == 0 || bytes <= static_cast<int64_t>(storage->nbytes()));
  check(fits, "setStorage: sizes ", str(sizes), ", strides ", str(strides), " and offset ", offset,
        " reach beyond the storage's ", storage->nbytes(), " bytes");
  TensorImpl* t = new_tensor_impl();
  Tensor owner(Ref<TensorImpl>::take(t));
  t->dtype = dtype;
  t->device = storage->device();
  t->layers = backend_layer(t->device.type);
  t->offset = offset;
  t->storage = std::move(storage);
  t->set_geometry(sizes, strides);
  return owner;
}

}  // namespace facula
