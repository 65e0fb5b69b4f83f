#include "core/dtype.h"

#include <array>
#include <atomic>

#include "core/error.h"
#include "core/quantized_dtype.h"

namespace facula {
namespace {

using K = DTypeKind;

constexpr std::array<DTypeInfo, dtype_slots> make_table() {
  std::array<DTypeInfo, dtype_slots> t{};
  auto set = [&](DType d, DTypeInfo i) { t[static_cast<size_t>(d)] = i; };
  set(DType::UInt8, {"uint8", "Byte", 1, K::Unsigned});
  set(DType::Int8, {"int8", "Char", 1, K::Signed, true});
  set(DType::Int16, {"int16", "Short", 2, K::Signed, true});
  set(DType::Int32, {"int32", "Int", 4, K::Signed, true});
  set(DType::Int64, {"int64", "Long", 8, K::Signed, true});
  set(DType::Float16, {"float16", "Half", 2, K::Float, true});
  set(DType::Float32, {"float32", "Float", 4, K::Float, true});
  set(DType::Float64, {"float64", "Double", 8, K::Float, true});
  set(DType::Complex32, {"complex32", "ComplexHalf", 4, K::Complex, true});
  set(DType::Complex64, {"complex64", "ComplexFloat", 8, K::Complex, true});
  set(DType::Complex128, {"complex128", "ComplexDouble", 16, K::Complex, true});
  set(DType::Bool, {"bool", "Bool", 1, K::Bool});
  set(qint8, {"qint8", "QInt8", 1, K::None});
  set(quint8, {"quint8", "QUInt8", 1, K::None});
  set(qint32, {"qint32", "QInt32", 4, K::None});
  set(quint4x2, {"quint4x2", "QUInt4x2", 1, K::None});
  set(quint2x4, {"quint2x4", "QUInt2x4", 1, K::None});
  set(bits_dtype(0), {"bits1x8", "Bits1x8", 1, K::Opaque});
  set(bits_dtype(1), {"bits2x4", "Bits2x4", 1, K::Opaque});
  set(bits_dtype(2), {"bits4x2", "Bits4x2", 1, K::Opaque});
  set(bits_dtype(3), {"bits8", "Bits8", 1, K::Opaque});
  set(bits_dtype(4), {"bits16", "Bits16", 2, K::Opaque});
  set(DType::BFloat16, {"bfloat16", "BFloat16", 2, K::Float, true});
  set(DType::Float8E5M2, {"float8_e5m2", "Float8_e5m2", 1, K::Float, true});
  set(DType::Float8E4M3, {"float8_e4m3fn", "Float8_e4m3fn", 1, K::Float, true});
  set(DType::Float8E5M2FNUZ, {"float8_e5m2fnuz", "Float8_e5m2fnuz", 1, K::Float, true});
  set(DType::Float8E4M3FNUZ, {"float8_e4m3fnuz", "Float8_e4m3fnuz", 1, K::Float, true});
  set(DType::UInt16, {"uint16", "UInt16", 2, K::Unsigned});
  set(DType::UInt32, {"uint32", "UInt32", 4, K::Unsigned});
  set(DType::UInt64, {"uint64", "UInt64", 8, K::Unsigned});
  set(narrow_unsigned(1), {"uint1", "UInt1", 1, K::Narrow});
  set(narrow_unsigned(2), {"uint2", "UInt2", 1, K::Narrow});
  set(narrow_unsigned(3), {"uint3", "UInt3", 1, K::Narrow});
  set(narrow_unsigned(4), {"uint4", "UInt4", 1, K::Narrow});
  set(narrow_unsigned(5), {"uint5", "UInt5", 1, K::Narrow});
  set(narrow_unsigned(6), {"uint6", "UInt6", 1, K::Narrow});
  set(narrow_unsigned(7), {"uint7", "UInt7", 1, K::Narrow});
  set(narrow_signed(1), {"int1", "Int1", 1, K::Narrow, true});
  set(narrow_signed(2), {"int2", "Int2", 1, K::Narrow, true});
  set(narrow_signed(3), {"int3", "Int3", 1, K::Narrow, true});
  set(narrow_signed(4), {"int4", "Int4", 1, K::Narrow, true});
  set(narrow_signed(5), {"int5", "Int5", 1, K::Narrow, true});
  set(narrow_signed(6), {"int6", "Int6", 1, K::Narrow, true});
  set(narrow_signed(7), {"int7", "Int7", 1, K::Narrow, true});
  set(DType::Float8E8M0, {"float8_e8m0fnu", "Float8_e8m0fnu", 1, K::Float});
  set(float4x2, {"float4_e2m1fn_x2", "Float4_e2m1fn_x2", 1, K::Float, true});
  set(DType::BComplex32, {"bcomplex32", "BComplex32", 4, K::Complex, true});
  set(DType::Undefined, {nullptr, "Undefined", 0, K::None});
  return t;
}
constexpr auto table = make_table();
static_assert([] {
  for (int i = 0; i < dtype_slots; ++i) {
    const DTypeInfo& facts = table[static_cast<size_t>(i)];
    const bool quantized = is_quantized(static_cast<DType>(i));
    if ((quantized ? 0 : facts.size) != dtype_bytes[i] ||
        (floating_dtypes >> i & 1) != (facts.kind == DTypeKind::Float) ||
        (complex_dtypes >> i & 1) != (facts.kind == DTypeKind::Complex) ||
        quantized != (facts.kind == DTypeKind::None && facts.name != nullptr))
      return false;
  }
  return true;
}());

std::atomic<DType> default_dtype_value{DType::Float32};

// The order of floating and complex dtypes in type promotion.
int width_rank(DType d) {
  switch (real_of(d)) {
    case DType::Float16:
    case DType::BFloat16:
      return 1;
    case DType::Float32:
      return 2;
    case DType::Float64:
      return 3;
    default:
      return 0;
  }
}

DType promote_integers(DType a, DType b) {
  const DTypeInfo &x = info(a), &y = info(b);
  if (x.kind == y.kind) return x.size >= y.size ? a : b;
  const DType u = x.kind == K::Unsigned ? a : b, s = x.kind == K::Unsigned ? b : a;
  if (u != DType::UInt8)
    throw Error(
        ErrorKind::Runtime,
        "promote_types(): unsigned integers wider than uint8 have no common dtype with others; "
        "got ",
        name(a), " and ", name(b));
  return s == DType::Int8 ? DType::Int16 : s;
}

DType promote_floats(DType a, DType b) {
  const int ra = width_rank(a), rb = width_rank(b);
  if (ra == rb) return real_of(a) == real_of(b) ? real_of(a) : DType::Float32;
  return real_of(ra > rb ? a : b);
}

}  // namespace

const DTypeInfo& info(DType d) { return table[static_cast<size_t>(d) & (dtype_slots - 1)]; }

DType real_of(DType d) {
  switch (d) {
    case DType::Complex32:
      return DType::Float16;
    case DType::BComplex32:
      return DType::BFloat16;
    case DType::Complex64:
      return DType::Float32;
    case DType::Complex128:
      return DType::Float64;
    default:
      return d;
  }
}

DType complex_of(DType d) {
  switch (d) {
    case DType::Float16:
      return DType::Complex32;
    case DType::BFloat16:
    case DType::Float32:
      return DType::Complex64;
    case DType::Float64:
      return DType::Complex128;
    default:
      return is_complex(d) ? d : complex_of(default_dtype());
  }
}

// Whether the order of PyTorch's promotion names the dtype.
static bool promotes(DType d) { return info(d).kind >= K::Bool && !is_float8(d) && d != float4x2; }

// Narrow unsigned integers rise to floats; what is only stored has no other common dtype.
static bool rises(DType from, DType to) {
  return info(from).kind == K::Narrow && !is_signed(from) && is_floating(to) && !is_float8(to);
}
static void check_promotes(DType a, DType b) {
  check(promotes(a) && promotes(b), "Promotion for ", info(a).legacy_name, " and ",
        info(b).legacy_name,
        " is not supported: promote_types() expected dtypes with arithmetic, not quantized or "
        "stored ones; got ",
        facula::name(a), " and ", facula::name(b));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Undefined) return b;
  if (b == DType::Undefined) return a;
  if (rises(a, b)) return b;
  if (rises(b, a)) return a;
  check_promotes(a, b);
  const K ka = info(a).kind, kb = info(b).kind;
  if (ka == K::Bool) return b;
  if (kb == K::Bool) return a;
  if (ka < K::Float && kb < K::Float) return promote_integers(a, b);
  if (ka == K::Complex || kb == K::Complex) {
    if (ka < K::Float || real_of(b) == a) return b;
    if (kb < K::Float || real_of(a) == b) return a;
    return complex_of(promote_floats(a, b));
  }
  if (ka < K::Float) return b;
  if (kb < K::Float) return a;
  return promote_floats(a, b);
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  return to != DType::Bool || from == DType::Bool;
}

DType dtype_by_name(std::string_view text) {
  for (int i = 0; i < dtype_slots; ++i)
    if (table[i].name && text == table[i].name) return static_cast<DType>(i);
  for (const DTypeAlias& a : dtype_aliases)
    if (text == a.name) return a.dtype;
  return DType::Undefined;
}

DType default_dtype() { return default_dtype_value.load(std::memory_order_relaxed); }
void set_default_dtype(DType d) { default_dtype_value.store(d, std::memory_order_relaxed); }

void not_implemented_for(const char* kernel, DType d) {
  throw Error(ErrorKind::NotImplemented, "\"", kernel, "\" not implemented for '",
              info(d).legacy_name, "'");
}

void no_element_of(size_t bytes) {
  throw Error(ErrorKind::NotImplemented, "no dtype has elements of ", bytes, " bytes");
}

}  // namespace facula
