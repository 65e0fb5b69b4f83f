#include "c_api/values.h"

#include <algorithm>

#include "core/extension.h"

namespace facula::c_api {
namespace {

static_assert(sizeof(facula_value) == 16);
static_assert(static_cast<int>(Tag::Tensor) == FACULA_TENSOR);
static_assert(static_cast<int>(Tag::Complex) == FACULA_COMPLEX);
static_assert(static_cast<int>(Tag::Device) == FACULA_DEVICE);
static_assert(static_cast<int>(Tag::TensorList) == FACULA_TENSOR_LIST);
static_assert(static_cast<int>(Tag::Object) == FACULA_OBJECT);
static_assert(static_cast<int>(Tag::Dict) == FACULA_DICT);
static_assert(static_cast<int>(DType::BFloat16) == FACULA_BFLOAT16);
static_assert(static_cast<int>(DType::Float8E4M3) == FACULA_FLOAT8_E4M3FN);
static_assert(static_cast<int>(DType::UInt64) == FACULA_UINT64);
static_assert(sizeof(Tensor) == sizeof(facula_tensor));

template <class T>
Value list_of(Tag tag, const facula_value& v, const T* Value::* at, const T* items) {
  check_type(items || v.length == 0, "a list of ", v.length, " values is a null pointer");
  Value x;
  x.tag = tag;
  x.length = v.length;
  x.*at = items;
  return x;
}

Layout layout_from(int64_t number) {
  const bool known = number >= 0 && number < most_layouts;
  check_value(known && layout_name(static_cast<Layout>(number)), "no layout has the number ",
              number);
  return static_cast<Layout>(number);
}

MemoryFormat format_from(int64_t number) {
  check_value(number >= 0 && number <= static_cast<int>(MemoryFormat::ChannelsLast3d),
              "no memory format has the number ", number);
  return static_cast<MemoryFormat>(number);
}

template <class T>
const T* copied(const T* from, size_t n) {
  T* to = new T[n];
  std::copy_n(from, n, to);
  return to;
}

}  // namespace

Device device_from(facula_device d, const char* function) {
  const bool in_range = d.type >= 0 && d.type <= 127 && d.index >= -1 && d.index <= 127;
  check_value(in_range && is_registered(static_cast<DeviceType>(d.type)), function,
              "(): no device of this process has type ", d.type, " and index ", d.index);
  return {static_cast<DeviceType>(d.type), static_cast<int8_t>(d.index)};
}

DType dtype_from(int64_t number, const char* function) {
  const bool known = number >= 0 && number < dtype_slots && name(static_cast<DType>(number));
  check_value(known && static_cast<DType>(number) != DType::Undefined, function,
              "(): no dtype has the number ", number);
  return static_cast<DType>(number);
}

IntSpan sizes_from(int32_t ndim, const int64_t* sizes, const char* function) {
  check_value(ndim >= 0 && ndim <= 64, function, "(): expected 0 to 64 dimensions; got ", ndim);
  check_type(sizes || ndim == 0, function, "(): expected ", ndim, " sizes; got a null pointer");
  return {sizes, static_cast<size_t>(ndim)};
}

Value ValueReader::read_values(const facula_value& v) {
  check_type(v.as.values || v.length == 0, "a list of ", v.length, " values is a null pointer");
  auto room = std::make_unique<Value[]>(v.length);
  for (uint32_t i = 0; i < v.length; ++i) room[i] = read(v.as.values[i]);
  values_.push_back(std::move(room));
  Value list = pack(std::span<const Value>(values_.back().get(), v.length));
  list.tag = static_cast<Tag>(v.tag);
  return list;
}

Value ValueReader::read_bools(const facula_value& v) {
  check_type(v.as.bools || v.length == 0, "a list of ", v.length, " values is a null pointer");
  auto room = std::make_unique<bool[]>(v.length);
  for (uint32_t i = 0; i < v.length; ++i) room[i] = v.as.bools[i] != 0;
  bools_.push_back(std::move(room));
  return pack(std::span<const bool>(bools_.back().get(), v.length));
}

Value ValueReader::read(const facula_value& v) {
  Value x;
  switch (v.tag) {
    case FACULA_NONE:
      return x;
    case FACULA_TENSOR:
      return Value::of_tensor(impl(v.as.tensor));
    case FACULA_INT:
      return Value::of_int(v.as.i);
    case FACULA_FLOAT:
      return Value::of_float(v.as.d);
    case FACULA_BOOLEAN:
      return Value::of_bool(v.as.i != 0);
    case FACULA_COMPLEX:
      x.tag = Tag::Complex;
      x.complex = reinterpret_cast<const complex128*>(given(v.as.pair, "value", "two numbers"));
      return x;
    case FACULA_STRING:
      return list_of(Tag::Str, v, &Value::chars, v.as.chars);
    case FACULA_DTYPE:
      return pack(dtype_from(v.as.i, "value"));
    case FACULA_LAYOUT:
      return pack(layout_from(v.as.i));
    case FACULA_MEMORY_FORMAT:
      return pack(format_from(v.as.i));
    case FACULA_DEVICE:
      return pack(device_from(v.as.device, "value"));
    case FACULA_GENERATOR:
    case FACULA_STORAGE:
    case FACULA_OBJECT:
      x.tag = v.as.object ? static_cast<Tag>(v.tag) : Tag::None;
      x.object = v.as.object;
      return x;
    case FACULA_INT_LIST:
      return list_of(Tag::IntList, v, &Value::ints, v.as.ints);
    case FACULA_FLOAT_LIST:
      return list_of(Tag::FloatList, v, &Value::doubles, v.as.doubles);
    case FACULA_BOOL_LIST:
      return read_bools(v);
    case FACULA_TENSOR_LIST:
      return list_of(Tag::TensorList, v, &Value::tensors,
                     reinterpret_cast<const Tensor*>(v.as.tensors));
    case FACULA_VALUE_LIST:
    case FACULA_TUPLE:
    case FACULA_DICT:
      return read_values(v);
    default:
      throw Error(ErrorKind::Type, "no value has the tag ", v.tag);
  }
}

facula_value ValueWriter::show(const Value& v) {
  facula_value x{};
  x.tag = static_cast<uint32_t>(v.tag);
  x.length = v.length;
  switch (v.tag) {
    case Tag::None:
      break;
    case Tag::Bool:
      x.as.i = v.b;
      break;
    case Tag::DType:
      x.as.i = static_cast<int64_t>(v.dtype);
      break;
    case Tag::Layout:
      x.as.i = static_cast<int64_t>(v.layout);
      break;
    case Tag::MemoryFormat:
      x.as.i = static_cast<int64_t>(v.memory_format);
      break;
    case Tag::Device:
      x.as.device = to_c(v.device);
      break;
    case Tag::ValueList:
    case Tag::Tuple:
    case Tag::Dict: {
      auto room = std::make_unique<facula_value[]>(v.length);
      for (uint32_t i = 0; i < v.length; ++i) room[i] = show(v.values[i]);
      x.as.values = room.get();
      values_.push_back(std::move(room));
      break;
    }
    case Tag::Int:
      x.as.i = v.i;
      break;
    case Tag::Float:
      x.as.d = v.d;
      break;
    default:  // pointers
      x.as.object = v.object;
  }
  return x;
}

namespace {

// A value that owns what it points to, from one that borrows.
facula_value owned(const Value& v) {
  ValueWriter borrowed;
  facula_value x = borrowed.show(v);
  switch (v.tag) {
    case Tag::Tensor:
      v.tensor->retain();
      break;
    case Tag::Storage:
      v.storage->retain();
      break;
    case Tag::Complex:
      x.as.pair = copied(x.as.pair, 2);
      break;
    case Tag::Str:
      x.as.chars = copied(v.chars, v.length);
      break;
    case Tag::IntList:
      x.as.ints = copied(v.ints, v.length);
      break;
    case Tag::FloatList:
      x.as.doubles = copied(v.doubles, v.length);
      break;
    case Tag::BoolList:
      x.as.bools = copied(x.as.bools, v.length);
      break;
    case Tag::TensorList:
      for (const Tensor& t : v.as_tensors())
        if (t.defined()) t->retain();
      x.as.tensors = copied(x.as.tensors, v.length);
      break;
    case Tag::ValueList:
    case Tag::Tuple:
    case Tag::Dict: {
      auto* list = new facula_value[v.length];
      for (uint32_t i = 0; i < v.length; ++i) list[i] = owned(v.values[i]);
      x.as.values = list;
      break;
    }
    default:
      break;
  }
  return x;
}

}  // namespace

facula_value take_result(Value& slot) {
  const facula_value x = owned(slot);
  clear(slot);
  return x;
}

void release(facula_value& v) {
  switch (v.tag) {
    case FACULA_TENSOR:
      facula_tensor_release(v.as.tensor);
      break;
    case FACULA_STORAGE:
      Ref<Storage>::take(static_cast<Storage*>(v.as.object)).reset();
      break;
    case FACULA_COMPLEX:
      delete[] v.as.pair;
      break;
    case FACULA_STRING:
      delete[] v.as.chars;
      break;
    case FACULA_INT_LIST:
      delete[] v.as.ints;
      break;
    case FACULA_FLOAT_LIST:
      delete[] v.as.doubles;
      break;
    case FACULA_BOOL_LIST:
      delete[] v.as.bools;
      break;
    case FACULA_TENSOR_LIST:
      for (uint32_t i = 0; i < v.length; ++i) facula_tensor_release(v.as.tensors[i]);
      delete[] v.as.tensors;
      break;
    case FACULA_VALUE_LIST:
    case FACULA_TUPLE:
    case FACULA_DICT:
      for (uint32_t i = 0; i < v.length; ++i) release(const_cast<facula_value&>(v.as.values[i]));
      delete[] v.as.values;
      break;
    default:
      break;
  }
  v = facula_value{};
}

// --- arguments that fit their type

namespace {

bool is_list(Tag t) { return t >= Tag::IntList && t <= Tag::ValueList; }

bool list_fits(const SchemaType& type, const Value& v) {
  if (v.length == 0 && is_list(v.tag)) return true;
  switch (type.kind) {
    case TypeKind::Tensor:
      return v.tag == Tag::TensorList &&
             (type.optional_elements || std::ranges::all_of(v.as_tensors(), &Tensor::defined));
    case TypeKind::Int:
    case TypeKind::SymInt:
      return v.tag == Tag::IntList;
    case TypeKind::Float:
      return v.tag == Tag::FloatList;
    case TypeKind::Bool:
      return v.tag == Tag::BoolList;
    default:
      break;
  }
  if (v.tag != Tag::ValueList) return false;
  SchemaType element = type;
  element.list = false;
  element.optional = type.optional_elements;
  for (uint32_t i = 0; i < v.length; ++i)
    if (!fits(element, false, v.values[i])) return false;
  return true;
}

}  // namespace

bool fits(const SchemaType& type, bool takes_number, const Value& v) {
  if (v.is_none()) return type.optional;
  if (type.list) return list_fits(type, v);  // the number in int[2] says what a lone int becomes
  switch (type.kind) {
    case TypeKind::Tensor:
      return v.is_tensor() || (takes_number && v.is_number());
    case TypeKind::Int:
    case TypeKind::SymInt:
    case TypeKind::DeviceIndex:
      return v.tag == Tag::Int;
    case TypeKind::Float:
    case TypeKind::SymFloat:
      return v.tag == Tag::Float || v.tag == Tag::Int;
    case TypeKind::Bool:
    case TypeKind::SymBool:
      return v.tag == Tag::Bool;
    case TypeKind::Complex:
    case TypeKind::Scalar:
      return v.is_number();
    case TypeKind::Str:
      return v.tag == Tag::Str;
    case TypeKind::ScalarType:
      return v.tag == Tag::DType;
    case TypeKind::Layout:
      return v.tag == Tag::Layout;
    case TypeKind::MemoryFormat:
      return v.tag == Tag::MemoryFormat;
    case TypeKind::Device:
      return v.tag == Tag::Device;
    case TypeKind::Generator:
      return v.tag == Tag::Generator;
    case TypeKind::Storage:
      return v.tag == Tag::Storage;
    default:
      return true;  // Any and its like: the operator looks itself
  }
}

}  // namespace facula::c_api

void facula_value_release(facula_value* v) {
  if (v) facula::c_api::release(*v);
}
