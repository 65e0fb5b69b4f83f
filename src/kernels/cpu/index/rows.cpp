#include "kernels/cpu/index/rows.h"

#include "kernels/cpu/loop/copy_bytes.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/simd/vector.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// No branch per element: an index outside is found out afterwards.
template <bool first, class I>
bool offsets_of(const I* from, int64_t n, const OffsetRule& rule, int64_t* to) {
  const int64_t lowest = rule.lowest, size = rule.size, step = rule.step;
  int64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = from[i];
    outside |= (v < lowest) | (v >= size);
    const auto place = static_cast<uint64_t>(v) + static_cast<uint64_t>((v >> 63) & size);
    const uint64_t offset = place * static_cast<uint64_t>(step);  // wraps where v is outside
    to[i] = static_cast<int64_t>(first ? offset : static_cast<uint64_t>(to[i]) + offset);
  }
  return outside == 0;
}

template <class I>
bool fill_offsets(const void* indices, int64_t n, const OffsetRule& rule, int64_t* to) {
  const I* from = static_cast<const I*>(indices);
  return rule.first ? offsets_of<true>(from, n, rule, to) : offsets_of<false>(from, n, rule, to);
}

inline int64_t offset_at(const char* offsets, int64_t step, int64_t i) {
  return *reinterpret_cast<const int64_t*>(offsets + i * step);
}

template <class T>
void gather_from_one_place(char* to, int64_t step, const char* from, int64_t from_step, int64_t n) {
  if (step == sizeof(T) && from_step == sizeof(T)) {
    copy_bytes(to, from, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(to + i * step) = *reinterpret_cast<const T*>(from + i * from_step);
}

// Dense rows from one place, or each element from its own column. Not inlined: where the compiler
// sees the table of pointers it reads it again for each element.
template <class T, bool columns>
[[gnu::noinline]] void gather_by_offsets(T* __restrict to, const int64_t* __restrict offsets,
                                         const char* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const char* place = from + offsets[i];
    to[i] = reinterpret_cast<const T*>(place)[columns ? i : 0];
  }
}

// Some rows side by side: an offset is read once for all of them.
template <class T, int rows>
[[gnu::always_inline]] inline void gather_rows(const SharedOffsets& r, int64_t first) {
  T* to[rows];
  const char* from[rows];
#pragma GCC unroll 8
  for (int k = 0; k < rows; ++k) {
    to[k] = reinterpret_cast<T*>(r.to + (first + k) * r.to_step);
    from[k] = r.from + (first + k) * r.from_step;
  }
  const int64_t* const offsets = r.offsets;
  for (int64_t j = 0, n = r.width; j < n; ++j) {
    const int64_t at = offsets[j];
#pragma GCC unroll 8
    for (int k = 0; k < rows; ++k) to[k][j] = *reinterpret_cast<const T*>(from[k] + at);
  }
}

template <class T>
[[gnu::noinline]] void gather_shared(const SharedOffsets r, int64_t begin, int64_t end) {
  constexpr int rows = 4;
  for (; begin + rows <= end; begin += rows) gather_rows<T, rows>(r, begin);
  for (; begin < end; ++begin) gather_rows<T, 1>(r, begin);
}

template <class T>
void gather_apart(char* const* data, const int64_t* steps, int64_t n) {
  char *const to = data[0], *const offsets = data[1], *const from = data[2];
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(to + i * steps[0]) =
        *reinterpret_cast<const T*>(from + i * steps[2] + offset_at(offsets, steps[1], i));
}

template <class T>
void gather(const void*, char* const* data, const int64_t* steps, int64_t n) {
  constexpr int64_t size = sizeof(T), wide = sizeof(int64_t);
  if (steps[1] == 0)
    return gather_from_one_place<T>(data[0], steps[0], data[2] + offset_at(data[1], 0, 0), steps[2],
                                    n);
  T* to = reinterpret_cast<T*>(data[0]);
  const int64_t* offsets = reinterpret_cast<const int64_t*>(data[1]);
  const bool dense = steps[0] == size && steps[1] == wide;
  if (dense && steps[2] == 0) return gather_by_offsets<T, false>(to, offsets, data[2], n);
  if (dense && steps[2] == size) return gather_by_offsets<T, true>(to, offsets, data[2], n);
  gather_apart<T>(data, steps, n);
}

// Where an index leads, or the rule's size where it does not hold. It is read once, so that nobody
// changes it after it was tested.
template <class I>
[[gnu::always_inline]] inline uint64_t place_of(const char* index, const OffsetRule& rule) {
  const int64_t v = *reinterpret_cast<const I*>(index);
  return static_cast<uint64_t>(rule.lowest == 0 ? v : v + ((v >> 63) & rule.size));
}

// One element after the other: so the tests cost less than a list of tested places. False where an
// index does not hold; what comes after it is left as it is.
template <class I, class T>
[[gnu::always_inline]] inline bool gather_steps(char* const* data, int64_t to, int64_t at,
                                                int64_t from, int64_t n, const OffsetRule& rule) {
  const auto size = static_cast<uint64_t>(rule.size);
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t place = place_of<I>(data[1] + i * at, rule);
    if (place >= size) return false;
    *reinterpret_cast<T*>(data[0] + i * to) =
        *reinterpret_cast<const T*>(data[2] + i * from + static_cast<int64_t>(place) * rule.step);
  }
  return true;
}

// The same for dense rows that are read from one place, or each element from its own column; not
// inlined, as above.
template <class I, class T, bool columns>
[[gnu::noinline]] bool gather_dense(T* __restrict to, const I* __restrict indices, const T* from,
                                    int64_t step, uint64_t size, int64_t n) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<uint64_t>(static_cast<int64_t>(indices[i]));
    if (place >= size) return false;
    to[i] = from[static_cast<int64_t>(place) * (columns ? step : 1) + (columns ? i : 0)];
  }
  return true;
}

template <class I, class T>
bool gather_row_by(char* const* data, const int64_t* steps, int64_t n, const OffsetRule& rule) {
  constexpr int64_t item = sizeof(T);
  if (steps[0] != item || steps[1] != sizeof(I) || rule.lowest != 0 || rule.step % item != 0)
    return gather_steps<I, T>(data, steps[0], steps[1], steps[2], n, rule);
  T* to = reinterpret_cast<T*>(data[0]);
  const I* indices = reinterpret_cast<const I*>(data[1]);
  const T* from = reinterpret_cast<const T*>(data[2]);
  const auto size = static_cast<uint64_t>(rule.size);
  if (steps[2] == 0 && rule.step == item)
    return gather_dense<I, T, false>(to, indices, from, 1, size, n);
  if (steps[2] == item)
    return gather_dense<I, T, true>(to, indices, from, rule.step / item, size, n);
  return gather_steps<I, T>(data, steps[0], steps[1], steps[2], n, rule);
}

template <class I, class T>
void gather_indexed(const void* context, char* const* data, const int64_t* steps, int64_t n) {
  const auto& c = *static_cast<const IndexedContext*>(context);
  if (!gather_row_by<I, T>(data, steps, n, c.rule))
    c.outside->store(true, std::memory_order_relaxed);
}

struct Assign {
  template <class T>
  static T call(T, T value) {
    return value;
  }
};
struct Add {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return static_cast<T>(a + b);
  }
};
struct Multiply {
  template <class T>
  static T call(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else
      return static_cast<T>(a * b);
  }
};
// The first NaN stays. Nobody can predict which of two numbers is the larger, so that is no branch.
struct Larger {
  template <class T>
  static T call(T a, T b) {
    if (b != b) [[unlikely]]
      return a != a ? a : b;
    return b > a ? b : a;
  }
};
struct Smaller {
  template <class T>
  static T call(T a, T b) {
    if (b != b) [[unlikely]]
      return a != a ? a : b;
    return b < a ? b : a;
  }
};

template <class T, class F>
[[gnu::always_inline]] inline void scatter_steps(char* const* data, int64_t at, int64_t to,
                                                 int64_t from, int64_t n) {
  char *const offsets = data[0], *const target = data[1], *const values = data[2];
  for (int64_t i = 0; i < n; ++i) {
    T& x = *reinterpret_cast<T*>(target + i * to + offset_at(offsets, at, i));
    x = F::call(read_stored(&x), read_stored(reinterpret_cast<const T*>(values + i * from)));
  }
}

template <class T, class F>
void scatter_to_one_place(char* place, int64_t step, const char* values, int64_t from, int64_t n) {
  if (step == sizeof(T) && from == sizeof(T)) {
    T* to = reinterpret_cast<T*>(place);
    const T* v = reinterpret_cast<const T*>(values);
    for (int64_t i = 0; i < n; ++i) to[i] = F::call(read_stored(to + i), read_stored(v + i));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    T& x = *reinterpret_cast<T*>(place + i * step);
    x = F::call(read_stored(&x), read_stored(reinterpret_cast<const T*>(values + i * from)));
  }
}

template <class T, class F>
void scatter(const void*, char* const* data, const int64_t* steps, int64_t n) {
  constexpr int64_t size = sizeof(T), wide = sizeof(int64_t);
  if (steps[0] == 0)
    return scatter_to_one_place<T, F>(data[1] + offset_at(data[0], 0, 0), steps[1], data[2],
                                      steps[2], n);
  if (steps[0] == wide && steps[1] == 0 && steps[2] == size)
    return scatter_steps<T, F>(data, wide, 0, size, n);
  if (steps[0] == wide && steps[1] == size && steps[2] == size)
    return scatter_steps<T, F>(data, wide, size, size, n);
  scatter_steps<T, F>(data, steps[0], steps[1], steps[2], n);
}

template <class T, class F>
[[gnu::always_inline]] inline void scatter_dense_row(T* to, const T* values, int64_t width) {
  if constexpr (std::is_same_v<F, Assign>) {
    copy_bytes(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(values),
               static_cast<size_t>(width) * sizeof(T));
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i)
      to[i] = F::call(read_stored(to + i), read_stored(values + i));
  }
}

// Asks for the lines of a row that is read, or written, some steps later.
template <int written>
[[gnu::always_inline]] inline void ask_for_row(const char* row, int64_t bytes) {
  constexpr int64_t line = 64, most = 8 * line;
  for (int64_t l = 0; l < (bytes < most ? bytes : most); l += line)
    __builtin_prefetch(row + l, written);
}

constexpr int64_t rows_ahead = 8;  // distance of prefetches

template <class T, class F>
[[gnu::always_inline]] inline void scatter_row_of(const DenseRows& rows, int64_t i) {
  scatter_dense_row<T, F>(reinterpret_cast<T*>(rows.to + i * rows.to_step + rows.offsets[i]),
                          reinterpret_cast<const T*>(rows.values + i * rows.value_step),
                          rows.width);
}

template <class T, class F>
void scatter_dense(const DenseRows& rows) {
  const auto bytes = rows.width * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < rows.count; ++i) {
    if (const int64_t next = i + rows_ahead; next < rows.count)
      ask_for_row<1>(rows.to + next * rows.to_step + rows.offsets[next], bytes);
    scatter_row_of<T, F>(rows, i);
  }
}

#if defined(__AVX512F__)
// The places of dense offsets that lie in the range; there is room for a vector more.
inline int64_t places_between(const OffsetRange& range, const int64_t* offsets, int64_t n,
                              int32_t* to) {
  constexpr int64_t lanes = 16;
  const __m512i low = _mm512_set1_epi64(range.low),
                span = _mm512_set1_epi64(static_cast<int64_t>(range.span));
  const auto hold = [&](const int64_t* at) {
    const __m512i above = _mm512_sub_epi64(_mm512_loadu_si512(at), low);
    return static_cast<uint32_t>(_mm512_cmplt_epu64_mask(above, span));
  };
  __m512i places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int64_t found = 0, i = 0;
  for (; i + lanes <= n; i += lanes) {
    const uint32_t mask = hold(offsets + i) | hold(offsets + i + lanes / 2) << 8;
    _mm512_storeu_si512(to + found,
                        _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), places));
    found += __builtin_popcount(mask);
    places = _mm512_add_epi32(places, _mm512_set1_epi32(lanes));
  }
  for (; i < n; ++i) {
    to[found] = static_cast<int32_t>(i);
    found += static_cast<uint64_t>(offsets[i]) - static_cast<uint64_t>(range.low) < range.span;
  }
  return found;
}

// What other ranges take is found by vectors, at a tenth of what storing an element costs.
template <class T, class F>
void scatter_between(const OffsetRange& range, char* const* data, const int64_t* steps, int64_t n) {
  constexpr int64_t run = 256, vector = 16;
  int32_t places[run + vector];
  char* const to = data[1];
  for (int64_t begin = 0; begin < n; begin += run) {
    const int64_t* offsets = reinterpret_cast<const int64_t*>(data[0]) + begin;
    const char* values = data[2] + begin * steps[2];
    const int64_t found = places_between(range, offsets, n - begin < run ? n - begin : run, places);
    for (int64_t k = 0; k < found; ++k) {
      T& x = *reinterpret_cast<T*>(to + offsets[places[k]]);
      const char* value = values + places[k] * steps[2];
      x = F::call(read_stored(&x), read_stored(reinterpret_cast<const T*>(value)));
    }
  }
}

template <class T, class F>
void scatter_dense_between(const OffsetRange& range, const DenseRows& rows) {
  constexpr int64_t run = 256, vector = 16;
  int32_t places[run + vector];
  const auto bytes = rows.width * static_cast<int64_t>(sizeof(T));
  for (int64_t begin = 0; begin < rows.count; begin += run) {
    const int64_t n = rows.count - begin < run ? rows.count - begin : run;
    const int64_t found = places_between(range, rows.offsets + begin, n, places);
    for (int64_t k = 0; k < found; ++k) {
      if (k + rows_ahead < found) {
        const int64_t next = begin + places[k + rows_ahead];
        ask_for_row<1>(rows.to + next * rows.to_step + rows.offsets[next], bytes);
        ask_for_row<0>(rows.values + next * rows.value_step, bytes);
      }
      scatter_row_of<T, F>(rows, begin + places[k]);
    }
  }
}
#endif

// The same by indices: operands are indices, to, values.
template <class T, class F>
[[gnu::always_inline]] inline bool put_steps(char* const* data, int64_t at, int64_t to,
                                             int64_t from, int64_t n, const OffsetRule& rule) {
  const auto size = static_cast<uint64_t>(rule.size);
  char *const indices = data[0], *const target = data[1], *const values = data[2];
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t place = place_of<int64_t>(indices + i * at, rule);
    if (place >= size) return false;
    T& x = *reinterpret_cast<T*>(target + i * to + static_cast<int64_t>(place) * rule.step);
    x = F::call(read_stored(&x), read_stored(reinterpret_cast<const T*>(values + i * from)));
  }
  return true;
}

template <class T, class F>
void put(const void* context, char* const* data, const int64_t* steps, int64_t n) {
  constexpr int64_t size = sizeof(T), wide = sizeof(int64_t);
  const auto& c = *static_cast<const IndexedContext*>(context);
  const OffsetRule rule = c.rule;
  const bool dense = steps[0] == wide && steps[2] == size && rule.lowest == 0;
  bool holds;
  if (dense && steps[1] == 0 && rule.step == size)
    holds = put_steps<T, F>(data, wide, 0, size, n, {0, rule.size, size, true});
  else if (dense && steps[1] == size)
    holds = put_steps<T, F>(data, wide, size, size, n, {0, rule.size, rule.step, true});
  else
    holds = put_steps<T, F>(data, steps[0], steps[1], steps[2], n, rule);
  if (!holds) c.outside->store(true, std::memory_order_relaxed);
}

template <class T, class F>
constexpr Scattering scattering{
    &scatter<T, F>,
    &scatter_dense<T, F>,
#if defined(__AVX512F__)
    &scatter_between<T, F>,
    &scatter_dense_between<T, F>,
#endif
};

template <class T>
Scattering reducer(Reduction how) {
  switch (how) {
    case Reduction::Sum:
      return scattering<T, Add>;
    case Reduction::Product:
      return scattering<T, Multiply>;
    default:
      break;
  }
  if constexpr (is_complex_v<T>)
    return {nullptr};
  else
    return how == Reduction::Maximum ? scattering<T, Larger> : scattering<T, Smaller>;
}

}  // namespace

bool index_offsets(const void* indices, int64_t n, OffsetRule rule, int64_t* to) {
  return fill_offsets<int64_t>(indices, n, rule, to);
}
bool index_offsets_narrow(const void* indices, int64_t n, OffsetRule rule, int64_t* to) {
  return fill_offsets<int32_t>(indices, n, rule, to);
}

RowFn gather_row(size_t bytes) {
  RowFn row = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { row = &gather<T>; });
  return row;
}

void gather_columns(size_t bytes, const SharedOffsets& rows, int64_t begin, int64_t end) {
  visit_size(bytes, [&]<class T>(Type<T>) { gather_shared<T>(rows, begin, end); });
}

RowFn gather_row_wide(size_t bytes) {
  RowFn row = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { row = &gather_indexed<int64_t, T>; });
  return row;
}
RowFn gather_row_narrow(size_t bytes) {
  RowFn row = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { row = &gather_indexed<int32_t, T>; });
  return row;
}

Scattering scatter_row(size_t bytes) {
  Scattering how{nullptr};
  visit_size(bytes, [&]<class T>(Type<T>) { how = scattering<T, Assign>; });
  return how;
}

RowFn put_row(size_t bytes) {
  RowFn row = nullptr;
  visit_size(bytes, [&]<class T>(Type<T>) { row = &put<T, Assign>; });
  return row;
}
RowFn put_add_row(DType dtype, const char* op) {
  RowFn row = nullptr;
  dispatch<float, double, IntegralTypes, WideUnsignedTypes, bool, ComplexTypes>(
      dtype, op, [&]<class T>(Type<T>) { row = &put<T, Add>; });
  return row;
}

Scattering reduce_row(DType dtype, Reduction how, const char* op) {
  Scattering found{nullptr};
  dispatch<float, double, IntegralTypes, bool, ComplexTypes>(
      dtype, op, [&]<class T>(Type<T>) { found = reducer<T>(how); });
  return found;
}

}  // namespace facula::cpu::FACULA_ISA
