#include "kernels/cpu/sort/sort.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/lines.h"
#include "kernels/cpu/loop/stored.h"
#include "kernels/cpu/sort/few.h"
#include "kernels/cpu/sort/keys.h"
#include "kernels/cpu/sort/scan.h"

namespace facula::cpu {
namespace {

// Stable order of the items by key; `other` is room of the same size. Returns where they end up.
// C counts up to n.
template <class C, class K>
Item<K>* radix_sort(Item<K>* items, Item<K>* other, int64_t n) {
  constexpr int bytes = sizeof(K);
  C counts[bytes][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int b = 0; b < bytes; ++b) ++counts[b][items[i].key >> (8 * b) & 0xff];
  for (int b = 0; b < bytes; ++b) {
    C* count = counts[b];
    if (static_cast<int64_t>(count[items[0].key >> (8 * b) & 0xff]) == n) continue;  // all agree
    C at = 0;
    for (int v = 0; v < 256; ++v) {
      const C next = static_cast<C>(at + count[v]);
      count[v] = at;
      at = next;
    }
    for (int64_t i = 0; i < n; ++i) other[count[items[i].key >> (8 * b) & 0xff]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

// The same by parts of the list, which threads share: a part's items of one byte go behind those of
// the parts before it.
constexpr int64_t shared_length = 65536, shared_part = 16384;

template <class K>
Item<K>* shared_radix_sort(Item<K>* items, Item<K>* other, int64_t n) {
  constexpr int64_t values = 256;
  const int64_t parts = (n + shared_part - 1) / shared_part;
  std::vector<int64_t> counts(static_cast<size_t>(parts * values));
  std::vector<K> seen(static_cast<size_t>(parts));
  const auto each_part = [&](auto&& body) {
    parallel_for(n, shared_part,
                 [&](int64_t begin, int64_t end) { body(begin / shared_part, begin, end); });
  };
  each_part([&](int64_t part, int64_t begin, int64_t end) {
    K differs = 0;
    for (int64_t i = begin; i < end; ++i)
      differs = static_cast<K>(differs | (items[i].key ^ items[0].key));
    seen[static_cast<size_t>(part)] = differs;
  });
  K differs = 0;
  for (K d : seen) differs = static_cast<K>(differs | d);
  for (int shift = 0; shift < 8 * static_cast<int>(sizeof(K)); shift += 8) {
    if ((differs >> shift & 0xff) == 0) continue;  // all keys agree in this byte
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      int64_t* count = counts.data() + part * values;
      std::fill_n(count, values, 0);
      for (int64_t i = begin; i < end; ++i) ++count[items[i].key >> shift & 0xff];
    });
    int64_t at = 0;
    for (int64_t v = 0; v < values; ++v)
      for (int64_t part = 0; part < parts; ++part)
        at += std::exchange(counts[static_cast<size_t>(part * values + v)], at);
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      int64_t* count = counts.data() + part * values;
      for (int64_t i = begin; i < end; ++i) other[count[items[i].key >> shift & 0xff]++] = items[i];
    });
    std::swap(items, other);
  }
  return items;
}

// Long keys count from the least one: those of integers of both signs agree in more bytes then.
template <class K>
void count_from_least(Item<K>* items, int64_t n) {
  if constexpr (sizeof(K) == 8) {
    K least = items[0].key;
    for (int64_t i = 1; i < n; ++i) least = std::min(least, items[i].key);
    for (int64_t i = 0; i < n; ++i) items[i].key -= least;
  }
}

// The order of items whose indices rise, by key and then by index.
template <class K>
Item<K>* sort_items(Item<K>* items, Item<K>* other, int64_t n) {
  if (n <= most_ranked) return FACULA_OF_ISA(sort_few<K>)(items, other, n);
  count_from_least(items, n);
  const bool shared = n >= shared_length && num_threads() > 1 && !in_parallel_region();
  if (shared) return shared_radix_sort(items, other, n);
  if (n <= UINT16_MAX) return radix_sort<uint16_t>(items, other, n);
  return radix_sort<int64_t>(items, other, n);
}

// One line's items; `flip` turns the order of keys around.
template <class T>
void fill_items(const T* x, int64_t n, int64_t step, bool flip, Item<Key<T>>* items) {
  const Key<T> mask = flip ? static_cast<Key<T>>(~Key<T>(0)) : Key<T>(0);
  parallel_for(n, shared_part, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      items[i].key = static_cast<Key<T>>(key_of(x[i * step]) ^ mask);
      items[i].index = static_cast<decltype(items[i].index)>(i);
    }
  });
}

// The first k items of a line in order: blocks that hold nothing better than the worst of the best
// so far are passed over.
template <class T>
void first_items(const T* x, int64_t n, bool flip, int64_t k, Item<Key<T>>* best) {
  const auto keys_below = FACULA_OF_ISA(keys_below<T>);
  Key<T> keys[scan_block];
  fill_items(x, k, 1, flip, best);
  std::make_heap(best, best + k);
  for (int64_t at = k; at < n; at += scan_block) {
    const int64_t count = std::min<int64_t>(scan_block, n - at);
    if (!keys_below(x + at, count, flip, best[0].key, keys)) continue;
    for (int64_t i = 0; i < count; ++i) {
      if (keys[i] >= best[0].key) continue;
      std::pop_heap(best, best + k);
      best[k - 1] = {keys[i], static_cast<decltype(best->index)>(at + i)};
      std::push_heap(best, best + k);
    }
  }
  std::sort_heap(best, best + k);
}

struct Line {
  int64_t in, out;  // where it begins
};

// Calls body(items, other, line) for every line, with room for twice its items.
template <class T, class Body>
void for_lines(const Lines& l, int64_t out_length, Body&& body) {
  using I = Item<Key<T>>;
  if (l.length == 0) return;
  check(sizeof(I) > 8 || l.length <= UINT32_MAX,
        "sort(): a dimension longer than 2^32 is not supported for this dtype");
  const int64_t grain = std::max<int64_t>(1, 4096 / l.length);
  parallel_for(l.count(), grain, [&](int64_t begin, int64_t end) {
    // Of the allocator that keeps large blocks: fresh pages would cost as much as the sorting.
    const int64_t bytes = 2 * l.length * static_cast<int64_t>(sizeof(I));
    const Tensor memory = empty_tensor(IntSpan(&bytes, 1), DType::UInt8);
    I* room = static_cast<I*>(memory.data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / l.inner, c = i % l.inner;
      body(room, room + l.length, Line{o * l.length * l.inner + c, o * out_length * l.inner + c});
    }
  });
}

template <class T>
void write(const Item<Key<T>>* items, int64_t n, int64_t step, const T* x, T* values,
           int64_t* indices) {
  parallel_for(n, shared_part, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = static_cast<int64_t>(items[i].index);
      values[i * step] = x[at * step];
      indices[i * step] = at;
    }
  });
}

// --- sort, topk

template <class T>
void sort_lines(const Tensor& in, const Lines& l, bool descending, const Tensor& values,
                const Tensor& indices) {
  const T* x = in.data<T>();
  for_lines<T>(l, l.length, [&](Item<Key<T>>* items, Item<Key<T>>* other, Line line) {
    fill_items(x + line.in, l.length, l.inner, descending, items);
    items = sort_items(items, other, l.length);
    write<T>(items, l.length, l.inner, x + line.in, values.data<T>() + line.out,
             indices.data<int64_t>() + line.out);
  });
}

template <class T>
void topk_lines(const Tensor& in, const Lines& l, int64_t k, bool largest, bool sorted,
                const Tensor& values, const Tensor& indices) {
  const T* x = in.data<T>();
  for_lines<T>(l, k, [&](Item<Key<T>>* items, Item<Key<T>>* other, Line line) {
    if (k * 16 <= l.length && l.inner == 1) {
      first_items(x + line.in, l.length, largest, k, items);
    } else {
      fill_items(x + line.in, l.length, l.inner, largest, items);
      // Sorting all by counting takes less than finding the first of many and sorting these.
      if (sorted && k * 4 >= l.length) {
        items = sort_items(items, other, l.length);
      } else {
        std::nth_element(items, items + k, items + l.length);
        if (sorted) std::sort(items, items + k);
      }
    }
    write<T>(items, k, l.inner, x + line.in, values.data<T>() + line.out,
             indices.data<int64_t>() + line.out);
  });
}

// --- one element of each line

// pick(x, step, items, other) gives the index of the element to take.
template <class T, class Pick>
void select_lines(const Tensor& in, const Lines& l, const Tensor& values, const Tensor& indices,
                  Pick&& pick) {
  const T* x = in.data<T>();
  T* value = values.data<T>();
  int64_t* index = indices.data<int64_t>();
  for_lines<T>(l, 1, [&](Item<Key<T>>* items, Item<Key<T>>* other, Line line) {
    fill_items(x + line.in, l.length, l.inner, false, items);
    const int64_t at = pick(x + line.in, items, other);
    value[line.out] = x[line.in + at * l.inner];
    index[line.out] = at;
  });
}

// The index of the item that is k-th by key and then by index. Items that agree with it in the
// bytes looked at so far stay, in order.
template <class K>
int64_t kth(Item<K>* items, int64_t n, int64_t k) {
  constexpr int64_t few = 256, tables = 4;
  for (int shift = 8 * static_cast<int>(sizeof(K)) - 8; shift >= 0 && n > few; shift -= 8) {
    const auto byte = [shift](const Item<K>& item) { return item.key >> shift & 0xff; };
    // Neighbours often have the same byte, and counts would wait for each other.
    int64_t counts[tables][256] = {};
    for (int64_t i = 0; i < n; ++i) ++counts[i % tables][byte(items[i])];
    K chosen = 0;
    for (int64_t here = 0;; ++chosen, k -= here) {
      here = counts[0][chosen] + counts[1][chosen] + counts[2][chosen] + counts[3][chosen];
      if (k < here) break;
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Item<K> item = items[i];
      items[kept] = item;
      kept += byte(item) == chosen;
    }
    n = kept;
  }
  if (n <= few) std::nth_element(items, items + k, items + n);
  return static_cast<int64_t>(items[k].index);
}

template <class T>
int64_t median_of(const T* x, int64_t step, Item<Key<T>>* items, int64_t n, bool skip_nan) {
  int64_t numbers = n;
  if constexpr (has_nan<T>) {
    for (int64_t i = 0; i < n; ++i) {
      if (x[i * step] == x[i * step]) continue;
      if (!skip_nan) return i;
      --numbers;
    }
  }
  return kth(items, n, numbers > 0 ? (numbers - 1) / 2 : 0);
}

// Of the longest runs of equal values the one of the smallest value; its last index. NaN equals
// nothing.
template <class T>
int64_t mode_of(const T* x, int64_t step, const Item<Key<T>>* sorted, int64_t n) {
  auto value = [&](int64_t i) { return x[static_cast<int64_t>(sorted[i].index) * step]; };
  int64_t best = 0, longest = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && value(end) == value(i)) ++end;
    if (end - i > longest) {
      longest = end - i;
      best = end - 1;
    }
    i = end;
  }
  return static_cast<int64_t>(sorted[best].index);
}

Lines lines_of(const Tensor& t, int64_t dim) {
  return Lines(t.sizes(), t.dim() ? wrap_dim(dim, t.dim()) : 0);
}

// Contiguous results to fill, copied where the caller's have other strides.
class Contiguous {
 public:
  explicit Contiguous(const Tensor& to)
      : to_(to), made_(to.is_contiguous() ? to : empty_tensor(to.sizes(), to.dtype())) {}
  const Tensor& get() const { return made_; }
  void store() const {
    if (!made_.is_same(to_)) copy(to_, made_);
  }

 private:
  const Tensor& to_;
  Tensor made_;
};

void median(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices,
            bool skip_nan) {
  const Tensor in = contiguous_values(self);
  const Lines l = lines_of(in, dim);
  dispatch<FloatingTypes, IntegralTypes>(in.dtype(), "median_cpu", [&]<class T>(Type<T>) {
    select_lines<T>(in, l, values, indices, [&](const T* x, auto* items, auto*) {
      if constexpr (std::is_integral_v<T>)
        return kth(items, l.length, (l.length - 1) / 2);
      else
        return median_of<T>(x, l.inner, items, l.length, skip_nan);
    });
  });
}

}  // namespace

void sort(const Tensor& self, std::optional<bool>, int64_t dim, bool descending,
          const Tensor& values, const Tensor& indices) {
  const Tensor in = contiguous_values(self);
  const Lines l = lines_of(in, dim);
  const Contiguous v(values), i(indices);
  dispatch<FloatingTypes, IntegralTypes, bool, WideUnsignedTypes>(
      in.dtype(), "sort_cpu",
      [&]<class T>(Type<T>) { sort_lines<T>(in, l, descending, v.get(), i.get()); });
  v.store();
  i.store();
}

void topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
          const Tensor& values, const Tensor& indices) {
  if (k == 0) return;
  const Tensor in = contiguous_values(self);
  const Lines l = lines_of(in, dim);
  auto run = [&]<class T>(Type<T>) { topk_lines<T>(in, l, k, largest, sorted, values, indices); };
  dispatch<FloatingTypes, IntegralTypes>(in.dtype(), "topk_cpu", run);
}

void kthvalue(const Tensor& self, int64_t k, int64_t dim, bool, const Tensor& values,
              const Tensor& indices) {
  const Tensor in = contiguous_values(self);
  const Lines l = lines_of(in, dim);
  auto run = [&]<class T>(Type<T>) {
    select_lines<T>(in, l, values, indices,
                    [&](const T*, auto* items, auto*) { return kth(items, l.length, k - 1); });
  };
  dispatch<FloatingTypes, IntegralTypes>(in.dtype(), "kthvalue_cpu", run);
}

void median_dim(const Tensor& self, int64_t dim, bool, const Tensor& values,
                const Tensor& indices) {
  median(self, dim, values, indices, false);
}
void nanmedian_dim(const Tensor& self, int64_t dim, bool, const Tensor& values,
                   const Tensor& indices) {
  median(self, dim, values, indices, true);
}

void mode(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  const Tensor in = contiguous_values(self);
  const Lines l = lines_of(in, dim);
  auto run = [&]<class T>(Type<T>) {
    select_lines<T>(in, l, values, indices, [&](const T* x, auto* items, auto* other) {
      return mode_of<T>(x, l.inner, sort_items(items, other, l.length), l.length);
    });
  };
  dispatch<FloatingTypes, IntegralTypes, bool>(in.dtype(), "mode_cpu", run);
}

Tensor order_of(const Tensor& self) {
  const Tensor values = empty_tensor(self.sizes(), self.dtype()),
               order = empty_tensor(self.sizes(), DType::Int64);
  sort(self, true, -1, false, values, order);
  return order;
}

}  // namespace facula::cpu
