// A number whose type is known at run time: bool, int64, double or complex128.
#pragma once
#include <cstdint>
#include <string>

#include "core/dtype.h"
#include "core/error.h"

namespace facula {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };

  constexpr Scalar() : Scalar(int64_t{0}) {}
  constexpr Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  constexpr Scalar(int v) : Scalar(static_cast<int64_t>(v)) {}
  constexpr Scalar(int64_t v) : kind_(Kind::Int), int_(v) {}
  constexpr Scalar(double v) : kind_(Kind::Float), float_(v) {}
  constexpr Scalar(complex128 v) : kind_(Kind::Complex), complex_(v) {}

  Kind kind() const { return kind_; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral() const { return kind_ <= Kind::Int; }
  bool is_floating() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  // The dtype that a tensor made of this number gets.
  DType dtype() const;

  // Converts as a C cast does: integers wrap around, imaginary parts are dropped.
  template <class T>
  T to() const;
  // As `to`, but RuntimeError when the value does not fit in T.
  template <class T>
  T checked_to(const char* what) const;
  bool equals(double v) const {
    return kind_ == Kind::Complex ? complex_.re == v && complex_.im == 0 : to<double>() == v;
  }

  Scalar operator-() const;
  Scalar conj() const { return is_complex() ? Scalar(facula::conj(complex_)) : *this; }
  std::string str() const;

 private:
  Kind kind_;
  union {
    int64_t int_;
    double float_;
    complex128 complex_;
  };
};

namespace detail {
// Converts a float to an integer; where C++ leaves the result undefined, gives what x86 does.
template <class T>
inline T float_to_int(double v) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (v >= 0x1p63 && v < 0x1p64) return static_cast<uint64_t>(v);
  }
  if (!(v >= -0x1p63 && v < 0x1p63)) return static_cast<T>(INT64_MIN);
  return static_cast<T>(static_cast<int64_t>(v));
}
}  // namespace detail

// One element converted from S to T by PyTorch's rules, without undefined behaviour.
template <class T, class S>
inline T convert(S v) {
  if constexpr (std::is_same_v<T, S>) {
    return v;
  } else if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    if constexpr (is_complex_v<S>)
      return T(convert<R>(v.re), convert<R>(v.im));
    else
      return T(convert<R>(v), R(0.0f));
  } else if constexpr (is_complex_v<S>) {
    if constexpr (std::is_same_v<T, bool>)
      return convert<bool>(v.re) || convert<bool>(v.im);
    else
      return convert<T>(v.re);
  } else if constexpr (std::is_same_v<T, bool>) {
    if constexpr (std::is_arithmetic_v<S>)
      return v != S(0);
    else
      return static_cast<float>(v) != 0.0f;
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<S>)
      return static_cast<T>(v);
    else
      return detail::float_to_int<T>(static_cast<double>(v));
  } else if constexpr (std::is_floating_point_v<T>) {
    if constexpr (std::is_arithmetic_v<S>)
      return static_cast<T>(v);
    else
      return static_cast<T>(static_cast<float>(v));
  } else {
    return T(static_cast<float>(v));
  }
}

template <class T>
T Scalar::to() const {
  switch (kind_) {
    case Kind::Bool:
      return convert<T>(int_ != 0);
    case Kind::Int:
      return convert<T>(int_);
    case Kind::Float:
      return convert<T>(float_);
    default:
      return convert<T>(complex_);
  }
}

template <class T>
T Scalar::checked_to(const char* what) const {
  const T v = to<T>();
  bool fits = true;
  if constexpr (std::is_same_v<T, bool>) {
    fits = true;
  } else if constexpr (std::is_integral_v<T>) {
    if (is_integral())
      fits = static_cast<int64_t>(v) == int_ && (int_ >= 0 || std::is_signed_v<T>);
    else
      fits = to<double>() > -0x1p63 && to<double>() < 0x1p64 &&
             static_cast<double>(v) == __builtin_trunc(to<double>());
  } else if constexpr (!is_complex_v<T>) {
    const double d = to<double>(), back = static_cast<double>(v);
    fits = !(__builtin_isinf(back) && __builtin_isfinite(d));
  }
  if constexpr (!is_complex_v<T>) fits = fits && (kind_ != Kind::Complex || complex_.im == 0);
  check(fits, "value cannot be converted to type ", what, " without overflow");
  return v;
}

// The element at an address; raises NotImplementedError for dtypes without numbers.
Scalar read_element(DType d, const void* p);

}  // namespace facula
