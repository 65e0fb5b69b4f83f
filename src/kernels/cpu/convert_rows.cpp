#include "kernels/cpu/convert_rows.h"

#include <cstring>

#include "core/scalar.h"

namespace facula::cpu::FACULA_ISA {
namespace {

template <class S, class D>
void convert_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  if (steps[0] == sizeof(D) && steps[1] == sizeof(S)) {
    D* to = reinterpret_cast<D*>(data[0]);
    const S* from = reinterpret_cast<const S*>(data[1]);
    for (int64_t i = 0; i < n; ++i) to[i] = convert<D>(from[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<D*>(data[0] + i * steps[0]) =
        convert<D>(*reinterpret_cast<const S*>(data[1] + i * steps[1]));
}

template <class T>
void store_all(char* to, int64_t n, T value) {
  T* at = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) at[i] = value;
}

template <class T>
void move_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  constexpr int64_t size = sizeof(T);
  if (steps[0] == size && steps[1] == size) {
    std::memmove(data[0], data[1], static_cast<size_t>(n) * sizeof(T));
    return;
  }
  if (steps[0] == size && steps[1] == 0)
    return store_all(data[0], n, *reinterpret_cast<const T*>(data[1]));
  if (steps[0] == size && steps[1] == -size) {
    T* to = reinterpret_cast<T*>(data[0]);
    const T* from = reinterpret_cast<const T*>(data[1]);
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(data[0] + i * steps[0]) =
        *reinterpret_cast<const T*>(data[1] + i * steps[1]);
}

template <class T>
void fill_row(const void* value, char* const* data, const int64_t* steps, int64_t n) {
  const T v = *static_cast<const T*>(value);
  if (steps[0] == sizeof(T)) return store_all(data[0], n, v);
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(data[0] + i * steps[0]) = v;
}

template <class F>
bool visit_storable(DType d, F&& f) {
  return visit_arithmetic(d, f) || visit_types<uint16_t, uint32_t, uint64_t>(d, f) ||
         visit_types<Complex<Half>, Float8E4M3, Float8E5M2>(d, f);
}

template <class S>
RowFn converter_from(DType to) {
  RowFn f = nullptr;
  visit_storable(to, [&]<class D>(Type<D>) { f = &convert_row<S, D>; });
  return f;
}

}  // namespace

RowFn mover(size_t bytes) {
  RowFn f = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { f = &move_row<T>; });
  return f;
}

RowFn converter(DType from, DType to) {
  RowFn f = nullptr;
  visit_storable(from, [&]<class S>(Type<S>) { f = converter_from<S>(to); });
  return f;
}

RowFn filler(size_t bytes) {
  RowFn f = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { f = &fill_row<T>; });
  return f;
}

}  // namespace facula::cpu::FACULA_ISA
