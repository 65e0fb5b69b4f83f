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

}  // namespace facula
