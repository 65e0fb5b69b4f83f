// Sorting and selecting along one dimension, by value with NaN greatest; equal values keep order.
#pragma once
#include <optional>
#include <string_view>

#include "core/tensor.h"

namespace facula::cpu {

void sort(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending,
          const Tensor& values, const Tensor& indices);
void topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
          const Tensor& values, const Tensor& indices);
void kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim, const Tensor& values,
              const Tensor& indices);
void median_dim(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                const Tensor& indices);
void nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                   const Tensor& indices);
void mode(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
          const Tensor& indices);
// The order of a 1-d contiguous tensor: int64 indices that sort it stably.
Tensor order_of(const Tensor& self);

}  // namespace facula::cpu
