#include "kernels/cpu/convert.h"

#include <cstring>

#include "kernels/cpu/loop.h"
#include "kernels/cpu/stored.h"

namespace facula::cpu {
namespace {

template <class S, class D>
void convert_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  if (steps[0] == sizeof(D) && steps[1] == sizeof(S)) {
    D* to = reinterpret_cast<D*>(data[0]);
    const S* from = reinterpret_cast<const S*>(data[1]);
    for (int64_t i = 0; i < n; ++i) to[i] = convert<D>(read_stored(from + i));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<D*>(data[0] + i * steps[0]) =
        convert<D>(read_stored(reinterpret_cast<const S*>(data[1] + i * steps[1])));
}

template <class T>
void move_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  if (steps[0] == sizeof(T) && steps[1] == sizeof(T)) {
    std::memmove(data[0], data[1], static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(data[0] + i * steps[0]) =
        *reinterpret_cast<const T*>(data[1] + i * steps[1]);
}

template <class F>
bool visit_storable(DType d, F&& f) {
  return visit_arithmetic(d, f) || visit_types<uint16_t, uint32_t, uint64_t>(d, f) ||
         visit_types<Complex<Half>, Float8E4M3, Float8E5M2>(d, f);
}

RowFn mover(size_t bytes) {
  RowFn f = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { f = &move_row<T>; });
  return f;
}

// One translation unit for S -> D of all pairs would be large: pairs go through these tables.
template <class S>
RowFn converter_from(DType to) {
  RowFn f = nullptr;
  visit_storable(to, [&]<class D>(Type<D>) { f = &convert_row<S, D>; });
  return f;
}

RowFn converter(DType from, DType to) {
  RowFn f = nullptr;
  visit_storable(from, [&]<class S>(Type<S>) { f = converter_from<S>(to); });
  return f;
}

template <class T>
void conj_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = *reinterpret_cast<const T*>(data[1] + i * steps[1]);
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = conj(v);
  }
}
template <class T>
void negate_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = *reinterpret_cast<const T*>(data[1] + i * steps[1]);
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = static_cast<T>(-v);
  }
}

void run_rows(const Tensor& dst, const Tensor& src, RowFn row) {
  LoopPlan plan(dst.sizes());
  plan.add(dst);
  plan.add(src);
  plan.simplify();
  plan.run(row, nullptr);
}

void apply_bits(const Tensor& dst, bool conj, bool neg) {
  if (conj) {
    RowFn f = nullptr;
    visit_complex(dst.dtype(), [&]<class T>(Type<T>) { f = &conj_row<T>; });
    check(f != nullptr, "copy_(): conjugation is not implemented for ", name(dst.dtype()));
    run_rows(dst, dst, f);
  }
  if (neg) {
    RowFn f = nullptr;
    visit_floating(dst.dtype(), [&]<class T>(Type<T>) { f = &negate_row<T>; });
    visit_complex(dst.dtype(), [&]<class T>(Type<T>) { f = &negate_row<T>; });
    check(f != nullptr, "copy_(): negation is not implemented for ", name(dst.dtype()));
    run_rows(dst, dst, f);
  }
}

template <class T>
void fill_row(const void* value, char* const* data, const int64_t* steps, int64_t n) {
  const T v = *static_cast<const T*>(value);
  if (steps[0] == sizeof(T)) {
    T* to = reinterpret_cast<T*>(data[0]);
    for (int64_t i = 0; i < n; ++i) to[i] = v;
    return;
  }
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(data[0] + i * steps[0]) = v;
}

}  // namespace

void copy(const Tensor& dst, const Tensor& src, const char* op) {
  if (dst.numel() == 0) return;
  const bool moves = dst.dtype() == src.dtype() && src.dtype() != DType::Bool;
  const RowFn row = moves ? mover(src.itemsize()) : converter(src.dtype(), dst.dtype());
  if (!row)
    throw Error(ErrorKind::NotImplemented, op, "(): conversion from ", name(src.dtype()), " to ",
                name(dst.dtype()), " is not implemented");
  // dst may be src's own memory in another geometry: read it all first.
  if (memory_overlap(dst, src) == Overlap::Partial)
    return copy(dst, converted(src, src.dtype()), op);
  run_rows(dst, src, row);
  apply_bits(dst, is_complex(dst.dtype()) && dst->conj != src->conj, dst->neg != src->neg);
}

Tensor converted(const Tensor& t, DType to) {
  const bool dense = is_dense_non_overlapping(t.sizes(), t.strides());
  Tensor out = dense ? empty_strided_tensor(t.sizes(), t.strides(), to, t.device())
                     : empty_tensor(t.sizes(), to, t.device());
  copy(out, t);
  return out;
}

Tensor contiguous(const Tensor& t) {
  if (t.is_contiguous() && !t->conj && !t->neg) return t;
  Tensor out = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy(out, t);
  return out;
}

Tensor contiguous_values(const Tensor& t) {
  if (t.dtype() != DType::Bool) return contiguous(t);
  const Tensor out = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy(out, t);
  return out;
}

void fill(const Tensor& t, const Scalar& value) {
  if (t.numel() == 0) return;
  LoopPlan plan(t.sizes());
  plan.add(t);
  plan.simplify();
  const bool known = visit_storable(t.dtype(), [&]<class T>(Type<T>) {
    const T v = value.to<T>();
    plan.run(&fill_row<T>, &v);
  });
  if (!known)
    throw Error(ErrorKind::NotImplemented, "fill_(): not implemented for ", name(t.dtype()));
}

}  // namespace facula::cpu
