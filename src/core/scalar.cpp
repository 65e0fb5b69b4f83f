#include "core/scalar.h"

namespace facula {

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::Bool:
      return DType::Bool;
    case Kind::Int:
      return DType::Int64;
    case Kind::Float:
      return default_dtype();
    default:
      return complex_of(default_dtype());
  }
}

Scalar Scalar::operator-() const {
  switch (kind_) {
    case Kind::Bool:
      return Scalar(-static_cast<int64_t>(int_));
    // Unsigned arithmetic, so that negating INT64_MIN wraps around as it does in a tensor.
    case Kind::Int:
      return Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(int_)));
    case Kind::Float:
      return Scalar(-float_);
    default:
      return Scalar(-complex_);
  }
}

std::string Scalar::str() const {
  switch (kind_) {
    case Kind::Bool:
      return int_ ? "True" : "False";
    case Kind::Int:
      return std::to_string(int_);
    case Kind::Float:
      return concat(float_);
    default:
      return concat("(", complex_.re, ",", complex_.im, ")");
  }
}

Scalar read_element(DType d, const void* p) {
  Scalar s;
  dispatch_elements(d, "_local_scalar_dense_cpu", [&]<class T>(Type<T>) {
    // Memory that was written as another dtype may hold bytes that are no valid bool.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    const Stored v = *static_cast<const Stored*>(p);
    if constexpr (std::is_same_v<T, bool>)
      s = Scalar(v != 0);
    else if constexpr (std::is_integral_v<T>)
      s = Scalar(static_cast<int64_t>(v));
    else if constexpr (is_complex_v<T>)
      s = Scalar(convert<complex128>(v));
    else
      s = Scalar(convert<double>(v));
  });
  return s;
}

}  // namespace facula
