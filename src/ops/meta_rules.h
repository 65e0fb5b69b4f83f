// Shape and type rules of families, and the promotion that they share.
#pragma once
#include "dispatch/meta.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"

namespace facula {

// PyTorch's result type of tensors and numbers: tensors with dimensions weigh more than 0-dim
// ones, those more than numbers, unless the kind (bool, integer, float, complex) rises.
class Promotion {
 public:
  void add(const Value& v);
  void add(const Tensor& t);
  void add_number(DType d) { numbers_ = promote(numbers_, d); }
  DType result() const;

 private:
  DType tensors_ = DType::Undefined, zero_dim_ = DType::Undefined, numbers_ = DType::Undefined;
};
DType result_type(std::span<const Value> values);
// The default dtype for integers and bool, else d itself.
inline DType float_of(DType d) { return is_integral(d, true) ? default_dtype() : d; }

namespace meta {

// States result 0 of an elementwise operator: the inputs' common shape, their stride order.
void pointwise_result(Meta& m, int inputs, DType result, DType compute);

void unary(Meta& m);         // dtype of the input
void unary_float(Meta& m);   // integers become the default dtype
void unary_bool(Meta& m);    // bool result, computed in the input's dtype
void value_test(Meta& m);    // the same, also of dtypes without arithmetic
void unary_real(Meta& m);    // complex becomes real (abs, angle)
void binary(Meta& m);        // promoted dtype of the first two arguments
void binary_float(Meta& m);  // the same, integers become the default dtype
void compare(Meta& m);       // bool result, computed in the promoted dtype
void equality(Meta& m);      // the same, also of dtypes without arithmetic
void ternary(Meta& m);       // promoted dtype of the first three arguments

// TypeError where both operands are numbers: Python's own operators serve those.
void not_two_numbers(const Meta& m);
void binary_of_tensor(Meta& m);        // binary, with not_two_numbers
void binary_float_of_tensor(Meta& m);  // binary_float, with not_two_numbers

}  // namespace meta
}  // namespace facula
