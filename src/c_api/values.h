// Values of the C interface to facula's and back. Handles of tensors are pointers to their headers.
#pragma once
#include <memory>
#include <vector>

#include "c_api/status.h"
#include "dispatch/operator.h"

namespace facula::c_api {

inline TensorImpl* impl(facula_tensor t) { return reinterpret_cast<TensorImpl*>(t); }
inline facula_tensor handle(TensorImpl* t) { return reinterpret_cast<facula_tensor>(t); }
inline facula_tensor handle(const Tensor& t) { return handle(t.get()); }
// Gives the reference to the caller.
inline facula_tensor handed_over(Tensor t) { return handle(t.leak()); }
// The tensor of a handle; TypeError for null.
inline Tensor shared(facula_tensor t, const char* function) {
  return Tensor::share(impl(given(t, function, "a tensor")));
}

inline facula_device to_c(Device d) { return {static_cast<int32_t>(d.type), d.index}; }
Device device_from(facula_device d, const char* function);
DType dtype_from(int64_t number, const char* function);
IntSpan sizes_from(int32_t ndim, const int64_t* sizes, const char* function);

// Reads values of the caller's; what lists have to be converted into lives as long as the reader.
class ValueReader {
 public:
  Value read(const facula_value& v);

 private:
  Value read_values(const facula_value& v);
  Value read_bools(const facula_value& v);
  std::vector<std::unique_ptr<Value[]>> values_;
  std::vector<std::unique_ptr<bool[]>> bools_;
};

// Shows values to the caller, borrowed; nested lists live as long as the writer.
class ValueWriter {
 public:
  facula_value show(const Value& v);

 private:
  std::vector<std::unique_ptr<facula_value[]>> values_;
};

// Takes a result out of its slot, as a value that owns what it points to.
facula_value take_result(Value& slot);
void release(facula_value& v);

// Whether the value may stand for an argument of this type; numbers for tensors where allowed.
bool fits(const SchemaType& type, bool takes_number, const Value& v);

}  // namespace facula::c_api
