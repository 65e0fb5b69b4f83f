// Element types: their properties, their promotion, and a switch from DType to C++ type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/complex.h"
#include "core/half.h"

namespace facula {

// Numbers are those of PyTorch's ScalarType, since saved programs contain them.
enum class DType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  Complex32 = 8,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  BFloat16 = 15,
  Float8E5M2 = 23,
  Float8E4M3 = 24,
  Float8E5M2FNUZ = 25,
  Float8E4M3FNUZ = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Float8E8M0 = 44,
  BComplex32 = 46,
  Undefined = 47,
};
inline constexpr int dtype_slots = 64;

// Numbers that have no enumerator: no kernel takes their elements, which only are kept and moved.
constexpr DType bits_dtype(int nth) { return DType{static_cast<int8_t>(18 + nth)}; }
constexpr DType narrow_unsigned(int bits) { return DType{static_cast<int8_t>(29 + bits)}; }
constexpr DType narrow_signed(int bits) { return DType{static_cast<int8_t>(36 + bits)}; }
inline constexpr DType float4x2 = DType{45};  // two in each byte

// Tables of kernels have this many slots; the last is that of all dtypes no kernel computes in.
inline constexpr int loop_slots = 32;
constexpr int loop_slot(DType d) {
  return static_cast<int>(d) < loop_slots ? static_cast<int>(d) : loop_slots - 1;
}

// Opaque: bits without a meaning. Narrow: an integer of less than eight bits, alone in its byte.
enum class DTypeKind : uint8_t { None, Opaque, Narrow, Bool, Unsigned, Signed, Float, Complex };

struct DTypeInfo {
  const char* name = nullptr;         // "float32"
  const char* legacy_name = nullptr;  // "Float", as in error texts and storage class names
  uint8_t size = 0;
  DTypeKind kind = DTypeKind::None;
  bool is_signed = false;
};

// The properties of one dtype; `name` is null for numbers that are no dtype.
const DTypeInfo& info(DType d);
// Bytes of one element, by dtype number; dtype.cpp checks it against its table of properties.
inline constexpr uint8_t dtype_bytes[dtype_slots] = {
    1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 0, 0, 0, 2, 0, 0, 1, 1, 1, 1, 2, 1,
    1, 1, 1, 2, 4, 8, 1, 1, 1, 1, 1,  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4};
inline size_t itemsize(DType d) { return dtype_bytes[static_cast<int>(d) & (dtype_slots - 1)]; }
inline const char* name(DType d) { return info(d).name; }

// The floating and the complex dtypes as bit sets, since every call asks; checked in dtype.cpp too.
inline constexpr uint64_t floating_dtypes = 0x3000'0780'80e0, complex_dtypes = 0x4000'0000'0700;
inline constexpr uint64_t float8_dtypes = 0x1000'0780'0000;
constexpr bool is_among(uint64_t dtypes, DType d) {
  return dtypes >> (static_cast<int>(d) & (dtype_slots - 1)) & 1;
}
inline bool is_complex(DType d) { return is_among(complex_dtypes, d); }
inline bool is_floating(DType d) { return is_among(floating_dtypes, d); }
inline bool is_integral(DType d, bool include_bool) {
  const DTypeKind k = info(d).kind;
  return k == DTypeKind::Signed || k == DTypeKind::Unsigned ||
         (include_bool && k == DTypeKind::Bool);
}
inline bool is_signed(DType d) { return info(d).is_signed; }
inline bool is_differentiable(DType d) { return is_among(floating_dtypes | complex_dtypes, d); }
inline bool is_reduced_float(DType d) { return d == DType::Float16 || d == DType::BFloat16; }
inline bool is_float8(DType d) { return is_among(float8_dtypes, d); }

// float32 for complex64 and so on; the dtype itself when it is not complex.
DType real_of(DType d);
// complex64 for float32 and so on; the dtype itself when it is complex. Of bfloat16 it is
// complex64, since nothing computes in bcomplex32.
DType complex_of(DType d);
// The dtype that arithmetic of reduced-precision values happens in.
inline DType compute_of(DType d) { return is_reduced_float(d) ? DType::Float32 : d; }
// The dtype that elements without arithmetic are compared and tested in.
inline DType comparison_of(DType d) {
  if (is_float8(d)) return DType::Float32;
  return d == DType::BComplex32 ? DType::Complex64 : d;
}

// The smallest dtype that both convert to by PyTorch's rules; throws for dtypes that have none.
DType promote(DType a, DType b);
// Whether a result of `from` may be stored in `to`: float into int and complex into real may not.
bool can_cast(DType from, DType to);
// Names of dtypes besides those of their records.
struct DTypeAlias {
  const char* name;
  DType dtype;
};
inline constexpr DTypeAlias dtype_aliases[] = {
    {"float", DType::Float32},    {"double", DType::Float64},     {"half", DType::Float16},
    {"int", DType::Int32},        {"long", DType::Int64},         {"short", DType::Int16},
    {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}, {"chalf", DType::Complex32},
    {"bit", narrow_unsigned(1)}};
// The dtype of the given name ("float32", "half", "long"), or Undefined.
DType dtype_by_name(std::string_view name);

DType default_dtype();
void set_default_dtype(DType d);

template <class T>
inline constexpr DType dtype_of = DType::Undefined;
template <>
inline constexpr DType dtype_of<bool> = DType::Bool;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::UInt8;
template <>
inline constexpr DType dtype_of<int8_t> = DType::Int8;
template <>
inline constexpr DType dtype_of<int16_t> = DType::Int16;
template <>
inline constexpr DType dtype_of<int32_t> = DType::Int32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::Int64;
template <>
inline constexpr DType dtype_of<uint16_t> = DType::UInt16;
template <>
inline constexpr DType dtype_of<uint32_t> = DType::UInt32;
template <>
inline constexpr DType dtype_of<uint64_t> = DType::UInt64;
template <>
inline constexpr DType dtype_of<Half> = DType::Float16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::BFloat16;
template <>
inline constexpr DType dtype_of<float> = DType::Float32;
template <>
inline constexpr DType dtype_of<double> = DType::Float64;
template <>
inline constexpr DType dtype_of<Complex<Half>> = DType::Complex32;
template <>
inline constexpr DType dtype_of<complex64> = DType::Complex64;
template <>
inline constexpr DType dtype_of<complex128> = DType::Complex128;
template <>
inline constexpr DType dtype_of<Float8E4M3> = DType::Float8E4M3;
template <>
inline constexpr DType dtype_of<Float8E5M2> = DType::Float8E5M2;
template <>
inline constexpr DType dtype_of<Float8E4M3FNUZ> = DType::Float8E4M3FNUZ;
template <>
inline constexpr DType dtype_of<Float8E5M2FNUZ> = DType::Float8E5M2FNUZ;
template <>
inline constexpr DType dtype_of<Float8E8M0> = DType::Float8E8M0;
template <>
inline constexpr DType dtype_of<Complex<BFloat16>> = DType::BComplex32;

template <class T>
struct Type {
  using type = T;
};

// Calls f(Type<T>{}) with the C++ type of one dtype out of the given types; returns false for
// others, which the caller must handle. Kernels call `dispatch` instead, which raises.
template <class... Ts, class F>
[[nodiscard]] bool visit_types(DType d, F&& f) {
  return ((dtype_of<Ts> == d ? (f(Type<Ts>{}), true) : false) || ...);
}
template <class F>
[[nodiscard]] bool visit_integral(DType d, F&& f) {
  return visit_types<uint8_t, int8_t, int16_t, int32_t, int64_t>(d, f);
}
template <class F>
[[nodiscard]] bool visit_floating(DType d, F&& f) {
  return visit_types<float, double, Half, BFloat16>(d, f);
}
template <class F>
[[nodiscard]] bool visit_complex(DType d, F&& f) {
  return visit_types<complex64, complex128>(d, f);
}
// Every dtype with arithmetic: bool, integers up to 64 bits (not the wide unsigned), floats,
// complex.
template <class F>
[[nodiscard]] bool visit_arithmetic(DType d, F&& f) {
  return visit_floating(d, f) || visit_integral(d, f) || visit_types<bool>(d, f) ||
         visit_complex(d, f);
}

// Every dtype whose elements convert to others: those above, and what has no arithmetic.
template <class F>
[[nodiscard]] bool visit_elements(DType d, F&& f) {
  return visit_arithmetic(d, f) ||
         visit_types<uint16_t, uint32_t, uint64_t, Complex<Half>, Complex<BFloat16>, Float8E4M3,
                     Float8E5M2, Float8E4M3FNUZ, Float8E5M2FNUZ, Float8E8M0>(d, f);
}

// Sets of types for `dispatch`.
template <class... Ts>
struct TypeSet {};
using FloatingTypes = TypeSet<float, double, Half, BFloat16>;
using IntegralTypes = TypeSet<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using WideUnsignedTypes = TypeSet<uint16_t, uint32_t, uint64_t>;
using ComplexTypes = TypeSet<complex64, complex128>;
using SmallComplexTypes = TypeSet<Complex<Half>, Complex<BFloat16>>;
using Float8Types = TypeSet<Float8E4M3, Float8E5M2, Float8E4M3FNUZ, Float8E5M2FNUZ, Float8E8M0>;

// PyTorch's error of a kernel that lacks a dtype: "kernel" not implemented for 'Half'.
[[noreturn]] void not_implemented_for(const char* kernel, DType d);

template <class T>
inline constexpr auto visit_set = []<class F>(DType d, F& f) { return visit_types<T>(d, f); };
template <class... Ts>
inline constexpr auto visit_set<TypeSet<Ts...>> =
    []<class F>(DType d, F& f) { return visit_types<Ts...>(d, f); };

// Calls f(Type<T>{}) with the C++ type of the dtype if it is among the given types and sets of
// types, and raises for the kernel otherwise, so that no result stays uninitialised.
template <class... Sets, class F>
void dispatch(DType d, const char* kernel, F&& f) {
  if (!(visit_set<Sets>(d, f) || ...)) [[unlikely]]
    not_implemented_for(kernel, d);
}
// The same over every dtype whose elements convert to others.
template <class F>
void dispatch_elements(DType d, const char* kernel, F&& f) {
  if (!visit_elements(d, f)) [[unlikely]]
    not_implemented_for(kernel, d);
}
[[noreturn]] void no_element_of(size_t bytes);

// Unsigned integers of 1, 2, 4, 8, 16 bytes by element size, for kernels that only move bits.
struct alignas(16) Bits128 {
  uint64_t lo, hi;
};
template <class F>
void visit_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(Type<uint8_t>{});
    case 2:
      return f(Type<uint16_t>{});
    case 4:
      return f(Type<uint32_t>{});
    case 8:
      return f(Type<uint64_t>{});
    case 16:
      return f(Type<Bits128>{});
    default:
      no_element_of(bytes);
  }
}

}  // namespace facula
