// Random integers and permutations.
#include <bit>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "kernels/cpu/random/distributions.h"
#include "kernels/cpu/random/stream.h"

namespace facula::dist {

namespace {

constexpr int64_t int64_min = std::numeric_limits<int64_t>::min();
constexpr int64_t int64_max = std::numeric_limits<int64_t>::max();

// Ranges from this size on draw 64 bits a value, to keep the skew of `% range` small.
constexpr uint64_t wide_range = uint64_t{1} << 28;

// Integers reach 16-bit floats through float, as in PyTorch.
template <class T>
T from_integer(int64_t x) {
  if constexpr (is_reduced<T>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

// What a dtype says about the integers that it holds.
struct Ends {
  double lowest, largest;  // of finite values
  int64_t low, high;       // of integers that random_ may give
  int digits;              // of the significand; 0 for an integral dtype
};

template <class T>
Ends ends_of() {
  if constexpr (std::is_same_v<T, Half>) {
    return {-65504.0, 65504.0, -65504, 65504, digits<T>};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    constexpr double largest = 0x1.fep127;
    return {-largest, largest, int64_min, int64_max, digits<T>};
  } else if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    return {Limits::lowest(), Limits::max(), int64_min, int64_max, digits<T>};
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return {0, 0x1p63, 0, int64_max, 0};
  } else {
    using Limits = std::numeric_limits<T>;
    return {static_cast<double>(Limits::lowest()), static_cast<double>(Limits::max()),
            static_cast<int64_t>(Limits::lowest()), static_cast<int64_t>(Limits::max()), 0};
  }
}

// x rounded to T's precision; out of int64's range gives its smallest value, as x86 converts.
template <class T>
int64_t round_through(int64_t x) {
  double value;
  if constexpr (std::is_same_v<T, double>)
    value = static_cast<double>(x);
  else
    value = static_cast<double>(static_cast<float>(T(static_cast<float>(x))));
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : int64_min;
}

// The distance of neighbouring values of T around x, for an |x| beyond T's exact integers.
template <class T>
int64_t spacing_at(int64_t x) {
  const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  const int exponent = 63 - std::countl_zero(magnitude | 1);
  return int64_t{1} << std::max(exponent - digits<T> + 1, 0);
}

// Values drawn from [from, to) are rounded to T last, and may leave the range by that. Both ends
// move inwards to a neighbour in T when that is so.
template <class T>
int64_t inner_from(int64_t from) {
  if (from == int64_max) return from;
  const int64_t rounded = round_through<T>(from + 1);
  return rounded < from ? rounded + spacing_at<T>(from + 1) : from;
}
template <class T>
int64_t inner_to(int64_t to) {
  const int64_t rounded = round_through<T>(to - 1);
  return rounded >= to ? rounded - spacing_at<T>(to - 1) : to;
}

void check_end(const char* name, int64_t value, const Ends& ends, DType dtype) {
  const bool inside = ends.digits > 0 ? static_cast<double>(value) >= ends.lowest &&
                                            static_cast<double>(value) <= ends.largest
                                      : value >= ends.low && value <= ends.high;
  check(inside, "random_(): ", name, " is out of bounds for ", facula::name(dtype), "; got ",
        value);
}

bool beyond_exact(int64_t value, const Ends& ends) {
  const int64_t limit = int64_t{1} << ends.digits;
  return ends.digits > 0 && (value < -limit || value > limit);
}

RandomRange full_range(DType dtype) {
  const bool wide = visit_types<int64_t, double, float, BFloat16>(dtype, [](auto) {});
  const bool narrow = visit_types<uint8_t, int8_t, int16_t, int32_t>(dtype, [](auto) {});
  check_kind(wide || narrow ? ErrorKind::Runtime : ErrorKind::NotImplemented, wide,
             "random_(): expected int64, float64, float32 or bfloat16 for the full range; got ",
             facula::name(dtype));
  return {.full = true};
}

template <class T>
RandomRange bounded_range(DType dtype, int64_t from, std::optional<int64_t> to) {
  const Ends ends = ends_of<T>();
  check(!to || from < *to, "random_(): expected from to be less than to; got from=", from,
        ", to=", to.value_or(0));
  int64_t last = 0;  // inclusive
  if constexpr (is_float<T>) {
    from = inner_from<T>(from);
    const int64_t end = to ? inner_to<T>(*to) : int64_t{1} << digits<T>;
    check(from < end, "random_(): expected from to be less than to in ", facula::name(dtype),
          "; got from=", from, ", to=", end);
    last = to ? end - 1 : end;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    last = to ? *to - 1 : -1;  // the largest uint64 does not fit: PyTorch refuses this too
  } else {
    last = to ? *to - 1 : ends.high;
  }
  check_end("from", from, ends, dtype);
  check_end("to - 1", last, ends, dtype);
  return {.range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1,
          .base = from,
          .inexact_from = beyond_exact(from, ends),
          .inexact_last = beyond_exact(last, ends)};
}

}  // namespace

RandomRange random_range(DType dtype, int64_t from, std::optional<int64_t> to) {
  if (!to && from == int64_min) return full_range(dtype);
  RandomRange result;
  const bool known = visit_types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t,
                                 uint32_t, uint64_t, float, double, Half, BFloat16>(
      dtype,
      [&](auto type) { result = bounded_range<typename decltype(type)::type>(dtype, from, to); });
  check(known, "random_(): expected an integral, floating-point or bool dtype; got ",
        facula::name(dtype));
  return result;
}

template <class T>
void random(Generator& g, T* out, int64_t n) {
  const std::lock_guard lock(g.mutex());
  if constexpr (std::is_same_v<T, bool>) {
    for_each_word(g, n, [=](int64_t i, uint32_t word) { out[i] = (word & 1) != 0; });
  } else if constexpr (std::is_same_v<T, int64_t>) {
    for_each_pair(g, n, [=](int64_t i, uint64_t word) {
      out[i] = static_cast<T>(word & static_cast<uint64_t>(int64_max));
    });
  } else if constexpr (std::is_integral_v<T>) {
    for_each_word(g, n, [=](int64_t i, uint32_t word) {
      out[i] = static_cast<T>(word & static_cast<uint32_t>(std::numeric_limits<T>::max()));
    });
  } else if constexpr (std::is_same_v<T, double>) {
    constexpr uint64_t values = (uint64_t{1} << 53) + 1;
    for_each_pair(g, n, [=](int64_t i, uint64_t word) { out[i] = static_cast<T>(word % values); });
  } else {
    constexpr uint32_t values = (uint32_t{1} << digits<T>)+1;
    for_each_word(g, n, [=](int64_t i, uint32_t word) { out[i] = from_integer<T>(word % values); });
  }
}

// Remainders by one divisor without a division: the fraction of word / divisor, in 64 bits, times
// the divisor. Exact for words of 32 bits.
class Remainder {
 public:
  explicit Remainder(uint32_t divisor) : divisor_(divisor), inverse_(UINT64_MAX / divisor + 1) {}
  uint32_t operator()(uint32_t word) const {
    const uint64_t fraction = inverse_ * word;
    return static_cast<uint32_t>(static_cast<unsigned __int128>(fraction) * divisor_ >> 64);
  }

 private:
  uint64_t divisor_, inverse_;
};

template <class T>
void random_from_to(Generator& g, T* out, int64_t n, uint64_t range, int64_t base) {
  check(range > 0, "random_(): expected a range of at least one value; got 0");
  const std::lock_guard lock(g.mutex());
  const uint64_t start = static_cast<uint64_t>(base);
  if (range >= wide_range) {
    for_each_pair(g, n, [=](int64_t i, uint64_t word) {
      out[i] = from_integer<T>(static_cast<int64_t>(word % range + start));
    });
    return;
  }
  const Remainder remainder(static_cast<uint32_t>(range));
  for_each_word(g, n, [=](int64_t i, uint32_t word) {
    out[i] = from_integer<T>(static_cast<int64_t>(remainder(word) + start));
  });
}

template <class T>
void random_full(Generator& g, T* out, int64_t n) {
  const std::lock_guard lock(g.mutex());
  for_each_pair(g, n, [=](int64_t i, uint64_t word) {
    out[i] = from_integer<T>(static_cast<int64_t>(word));
  });
}

template <class T>
void randperm(Generator& g, T* out, int64_t n) {
  constexpr int64_t small = std::numeric_limits<uint32_t>::max() / 20;
  const std::lock_guard lock(g.mutex());
  if (n < small) {
    for (int64_t i = 0; i < n; ++i) out[i] = from_integer<T>(i);
    for_each_word(g, n - 1, [=](int64_t i, uint32_t word) {
      std::swap(out[i], out[i + word % static_cast<uint32_t>(n - i)]);
    });
    return;
  }
  // The shuffle that fills as it goes; 64 bits keep it fair for a large n.
  for_each_draw(g, n, [&](int64_t i) {
    const int64_t at = static_cast<int64_t>(g.next64() % static_cast<uint64_t>(i + 1));
    out[i] = out[at];
    out[at] = from_integer<T>(i);
  });
}

template void random<bool>(Generator&, bool*, int64_t);
template void random_from_to<bool>(Generator&, bool*, int64_t, uint64_t, int64_t);

#define FACULA_NUMBER(T)                                                       \
  template void random<T>(Generator&, T*, int64_t);                            \
  template void random_from_to<T>(Generator&, T*, int64_t, uint64_t, int64_t); \
  template void randperm<T>(Generator&, T*, int64_t);
FACULA_NUMBER(uint8_t)
FACULA_NUMBER(int8_t)
FACULA_NUMBER(int16_t)
FACULA_NUMBER(int32_t)
FACULA_NUMBER(int64_t)
FACULA_NUMBER(float)
FACULA_NUMBER(double)
FACULA_NUMBER(Half)
FACULA_NUMBER(BFloat16)

template void random_from_to<uint16_t>(Generator&, uint16_t*, int64_t, uint64_t, int64_t);
template void random_from_to<uint32_t>(Generator&, uint32_t*, int64_t, uint64_t, int64_t);
template void random_from_to<uint64_t>(Generator&, uint64_t*, int64_t, uint64_t, int64_t);

template void random_full<int64_t>(Generator&, int64_t*, int64_t);
template void random_full<float>(Generator&, float*, int64_t);
template void random_full<double>(Generator&, double*, int64_t);
template void random_full<BFloat16>(Generator&, BFloat16*, int64_t);

}  // namespace facula::dist
