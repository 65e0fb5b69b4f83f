#include "kernels/cpu/sparse/indices.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/threads.h"

namespace facula::cpu::sparse {
namespace {

Tensor numbers(int64_t n) { return empty_tensor(IntVec(1, n), DType::Int64); }
Tensor numbers(const std::vector<int64_t>& from) {
  const Tensor t = numbers(static_cast<int64_t>(from.size()));
  std::copy(from.begin(), from.end(), t.data<int64_t>());
  return t;
}
std::span<const int64_t> all_of(const Tensor& t) {
  return {t.data<int64_t>(), static_cast<size_t>(t.numel())};
}

struct Keyed {
  int64_t key, place;
  // The places make all different, so any sort is stable.
  friend auto operator<=>(const Keyed&, const Keyed&) = default;
};

// By digits of 11 bits, from the lowest to the highest that differ: each pass is stable.
void sort_by_digits(std::vector<Keyed>& all, int64_t least, uint64_t range) {
  constexpr int digit_bits = 11;
  constexpr uint64_t digits = uint64_t{1} << digit_bits;
  std::vector<Keyed> other(all.size());
  for (int shift = 0; shift < 64 && range >> shift != 0; shift += digit_bits) {
    const auto digit = [=](const Keyed& k) {
      const uint64_t above = static_cast<uint64_t>(k.key) - static_cast<uint64_t>(least);
      return static_cast<size_t>(above >> shift & (digits - 1));
    };
    size_t at[digits] = {};
    for (const Keyed& k : all) ++at[digit(k)];
    std::exclusive_scan(at, at + digits, at, size_t{0});
    for (const Keyed& k : all) other[at[digit(k)]++] = k;
    all.swap(other);
  }
}

// Keys with their places, sorted by both.
std::vector<Keyed> sorted(std::span<const int64_t> keys) {
  constexpr size_t few = 512;
  std::vector<Keyed> all(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) all[i] = {keys[i], static_cast<int64_t>(i)};
  if (std::is_sorted(all.begin(), all.end())) return all;
  if (all.size() < few) {
    std::sort(all.begin(), all.end());
    return all;
  }
  const auto [least, most] = std::minmax_element(keys.begin(), keys.end());
  sort_by_digits(all, *least, static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least));
  return all;
}

}  // namespace

namespace {

// Throws for the first index outside of its dimension, if there is one.
void check_positions(const Tensor& indices, IntSpan sizes) {
  const int64_t dims = indices.sizes()[0], n = indices.sizes()[1];
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = indices.data<int64_t>()[d * n + i];
      check(at >= 0, "found negative index ", at, " for dim ", d);
      check(at < size, "size is inconsistent with indices: for dim ", d, ", size is ", size,
            " but found index ", at);
    }
  }
}

}  // namespace

Tensor flat_positions(const Tensor& indices, IntSpan sizes) {
  constexpr int64_t run = 4096;  // elements that one task handles
  const int64_t dims = indices.sizes()[0], n = indices.sizes()[1];
  checked_numel(sizes);
  const Tensor flat = numbers(n);
  parallel_for(n, run, [&](int64_t begin, int64_t end) {
    int64_t* to = flat.data<int64_t>();
    std::fill(to + begin, to + end, 0);
    uint64_t outside = 0;
    for (int64_t d = 0; d < dims; ++d) {
      const int64_t* from = indices.data<int64_t>() + d * n;
      const auto size = static_cast<uint64_t>(sizes[static_cast<size_t>(d)]);
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<uint64_t>(from[i]);
        outside |= at >= size;
        to[i] = static_cast<int64_t>(static_cast<uint64_t>(to[i]) * size + at);
      }
    }
    if (outside == 0) return;
    check_positions(indices, sizes);
    throw Error(ErrorKind::Runtime, "sparse tensor: indices changed while they were read");
  });
  return flat;
}

Tensor positions_of(const Tensor& flat, IntSpan sizes) {
  const auto dims = static_cast<int64_t>(sizes.size());
  const int64_t n = flat.numel();
  const int64_t shape[] = {dims, n};
  const Tensor indices = empty_tensor(shape, DType::Int64);
  std::vector<int64_t> rest(all_of(flat).begin(), all_of(flat).end());
  for (int64_t d = dims; d-- > 0;) {
    int64_t* to = indices.data<int64_t>() + d * n;
    const int64_t size = std::max<int64_t>(sizes[static_cast<size_t>(d)], 1);
    for (int64_t i = 0; i < n; ++i) {
      to[i] = rest[static_cast<size_t>(i)] % size;
      rest[static_cast<size_t>(i)] /= size;
    }
  }
  return indices;
}

bool strictly_ascending(const Tensor& flat) {
  const auto all = all_of(flat);
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i] <= all[i - 1]) return false;
  return true;
}

Tensor stable_order(const Tensor& flat) {
  const Tensor order = numbers(flat.numel());
  int64_t* to = order.data<int64_t>();
  if (std::is_sorted(all_of(flat).begin(), all_of(flat).end())) {
    std::iota(to, to + flat.numel(), int64_t{0});
    return order;
  }
  for (const Keyed& k : sorted(all_of(flat))) *to++ = k.place;
  return order;
}

Groups grouped(const Tensor& flat) {
  const Tensor group_of = numbers(flat.numel());
  int64_t* group = group_of.data<int64_t>();
  std::vector<int64_t> found, first;
  for (const Keyed& k : sorted(all_of(flat))) {
    if (found.empty() || found.back() != k.key) {
      found.push_back(k.key);
      first.push_back(k.place);
    }
    group[k.place] = static_cast<int64_t>(found.size()) - 1;
  }
  return {numbers(found), group_of, numbers(first)};
}

Merged merged(const Tensor& a, const Tensor& b) {
  const auto x = all_of(a), y = all_of(b);
  const Tensor from_a = numbers(a.numel()), from_b = numbers(b.numel());
  int64_t *to_a = from_a.data<int64_t>(), *to_b = from_b.data<int64_t>();
  std::vector<int64_t> found;
  found.reserve(std::max(x.size(), y.size()));
  for (size_t i = 0, j = 0; i < x.size() || j < y.size();) {
    const auto at = static_cast<int64_t>(found.size());
    const bool has_a = i < x.size() && (j == y.size() || x[i] <= y[j]);
    const bool has_b = j < y.size() && (i == x.size() || y[j] <= x[i]);
    found.push_back(has_a ? x[i] : y[j]);
    if (has_a) to_a[i++] = at;
    if (has_b) to_b[j++] = at;
  }
  return {numbers(found), from_a, from_b};
}

Tensor places_of(const Tensor& wanted, const Tensor& among) {
  const auto all = all_of(among);
  const Tensor places = numbers(wanted.numel());
  int64_t* to = places.data<int64_t>();
  for (int64_t number : all_of(wanted)) {
    const auto it = std::lower_bound(all.begin(), all.end(), number);
    *to++ = it != all.end() && *it == number ? it - all.begin() : -1;
  }
  return places;
}

Pairs pairs_of_equals(const Tensor& a, const Tensor& b) {
  const Tensor order = stable_order(b);
  const int64_t* key = b.data<int64_t>();
  const auto at = all_of(order);
  std::vector<int64_t> first, second;
  const auto less = [key](int64_t place, int64_t number) { return key[place] < number; };
  for (int64_t i = 0; i < a.numel(); ++i) {
    const int64_t number = a.data<int64_t>()[i];
    auto it = std::lower_bound(at.begin(), at.end(), number, less);
    for (; it != at.end() && key[*it] == number; ++it) {
      first.push_back(i);
      second.push_back(*it);
    }
  }
  return {numbers(first), numbers(second)};
}

Tensor row_starts(const Tensor& rows_of_elements, int64_t rows) {
  const Tensor starts = numbers(rows + 1);
  int64_t* to = starts.data<int64_t>();
  std::fill_n(to, rows + 1, 0);
  for (int64_t r : all_of(rows_of_elements)) {
    check(r >= 0 && r < rows, "size is inconsistent with indices: for dim 0, size is ", rows,
          " but found index ", r);
    ++to[r + 1];
  }
  std::partial_sum(to, to + rows + 1, to);
  return starts;
}

Tensor rows_from_starts(const Tensor& starts, int64_t n) {
  const auto at = all_of(starts);
  const Tensor rows = numbers(n);
  int64_t* to = rows.data<int64_t>();
  int64_t last = 0;
  check(!at.empty() && at[0] == 0, "compressed indices must begin with 0");
  for (size_t r = 1; r < at.size(); ++r) {
    const int64_t end = at[r];
    check(end >= last && end <= n, "compressed indices must ascend from 0 to nnz (", n, "); got ",
          end, " after ", last);
    std::fill(to + last, to + end, static_cast<int64_t>(r) - 1);
    last = end;
  }
  check(last == n, "compressed indices must end with nnz (", n, "); got ", last);
  return rows;
}

void check_starts(const Tensor& starts, int64_t n) {
  const auto at = all_of(starts);
  check(!at.empty() && at[0] == 0, "compressed indices must begin with 0");
  for (size_t r = 1; r < at.size(); ++r)
    check(at[r] >= at[r - 1] && at[r] <= n, "compressed indices must ascend from 0 to nnz (", n,
          "); got ", at[r], " after ", at[r - 1]);
  check(at.back() == n, "compressed indices must end with nnz (", n, "); got ", at.back());
}

}  // namespace facula::cpu::sparse
