// Copies element by element, between strides and dtypes.
#include "core/dtype.h"
#include "device.h"
#include "queue.h"

namespace toy {
namespace {

using namespace facula;

// One that has been given to a stream outlives the caller's lists.
struct Copy {
  explicit Copy(const facula_strided_copy& c)
      : given(c),
        sizes(c.sizes, c.sizes + c.dims),
        to(c.to_strides, c.to_strides + c.dims),
        from(c.from_strides, c.from_strides + c.dims) {}

  template <class T, class F>
  void walk(size_t d, T* t, const F* f) const {
    if (d == sizes.size()) {
      *t = static_cast<T>(*f);
      return;
    }
    for (int64_t i = 0; i < sizes[d]; ++i) walk(d + 1, t + i * to[d], f + i * from[d]);
  }
  template <class T, class F>
  void run() const {
    walk(0, on_host(static_cast<T*>(given.to)), on_host(static_cast<const F*>(given.from)));
  }

  facula_strided_copy given;
  std::vector<int64_t> sizes, to, from;
};

template <class T>
Work same_type(Copy copy) {
  return [copy = std::move(copy)] { copy.run<T, T>(); };
}

Work work_of(const facula_strided_copy& c) {
  const auto to = static_cast<DType>(c.to_dtype), from = static_cast<DType>(c.from_dtype);
  Copy copy(c);
  if (to == DType::Float32 && from == DType::Float64)
    return [copy = std::move(copy)] { copy.run<float, double>(); };
  if (to == DType::Float64 && from == DType::Float32)
    return [copy = std::move(copy)] { copy.run<double, float>(); };
  if (to != from) return nullptr;
  switch (itemsize(to)) {
    case 1:
      return same_type<uint8_t>(std::move(copy));
    case 2:
      return same_type<uint16_t>(std::move(copy));
    case 4:
      return same_type<uint32_t>(std::move(copy));
    case 8:
      return same_type<uint64_t>(std::move(copy));
  }
  return nullptr;
}

}  // namespace

int copy_strided(int index, const facula_strided_copy* copy, void* stream) {
  Work work = copy->conjugate || copy->negate ? nullptr : work_of(*copy);
  if (!work) return FACULA_DEVICE_NOT_SUPPORTED;
  queue_of(index, stream).give(std::move(work));
  return 0;
}

}  // namespace toy
