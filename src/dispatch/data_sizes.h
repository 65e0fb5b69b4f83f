// Sizes that data decide, for calls without data: on the meta device, and so on fake tensors. The
// shape rule of a record with the flag shape_from_data asks for them; its kernel, where there are
// data, sets the results instead.
#pragma once
#include <initializer_list>
#include <string_view>

#include "core/tensor.h"

namespace facula {

// What stands for such sizes, and for other numbers from data, while a program is traced.
struct DataSizes {
  static constexpr int64_t no_limit = -1;
  virtual ~DataSizes() = default;
  // The number that stands for a new size, which is at most `limit`.
  virtual int64_t size(int64_t limit) = 0;
  // Whether an argument is a number that stands for one from data.
  virtual bool is_symbolic(int64_t number) = 0;
  // The length of a slice of `size` elements, of whose start, end and step one is such a number.
  virtual int64_t size_of_slice(int64_t dim, int64_t size, int64_t start, int64_t end,
                                int64_t step) = 0;
};
// Those of this thread; null where nothing stands for data.
extern thread_local constinit DataSizes* data_sizes __attribute__((tls_model("initial-exec")));

// Lets what a scope calls on this thread ask these.
class UseDataSizes {
 public:
  explicit UseDataSizes(DataSizes* sizes) : before_(data_sizes) { data_sizes = sizes; }
  ~UseDataSizes() { data_sizes = before_; }
  UseDataSizes(const UseDataSizes&) = delete;

 private:
  DataSizes* const before_;
};

// The size of an operator's result that data decide. NotImplementedError where nothing stands for
// it.
int64_t size_from_data(std::string_view op, int64_t limit = DataSizes::no_limit);
[[noreturn]] void refuse_without_data(std::string_view op);

// Whether data decide an argument of a call on this tensor.
inline bool is_from_data(const Tensor& t, std::initializer_list<int64_t> numbers) {
  if (!t.is_meta() || !data_sizes) return false;
  for (int64_t n : numbers)
    if (data_sizes->is_symbolic(n)) return true;
  return false;
}

}  // namespace facula
