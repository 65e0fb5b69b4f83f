// Sums and maxima of rows of a table, built once per instruction set.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/half.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// `count` rows of `table` by number; `scales` (a factor for each) may be null.
template <class T>
struct TableRows {
  const T* table;
  int64_t width;
  const int64_t* numbers;
  const T* scales;
  int64_t count;
  int64_t padding;    // a row that is passed over
  int64_t ahead = 0;  // numbers that follow those of `count`, of rows soon needed
  bool mean = false;  // the sum is divided by the number of rows that were not passed over
};

FACULA_PER_ISA(
    // to = the sum of the rows, in their order; returns how many were not passed over. T: float,
    // double, Half and BFloat16.
    template <class T> int64_t sum_rows(const TableRows<T>& rows, accumulate_t<T>* to);
    // to = the greatest of each column over the rows, 0 where there are none; chosen = the row that
    // has it, the first of equal ones, untouched where there are none. Returns how many were met.
    template <class T>
    int64_t max_rows(const TableRows<T>& rows, accumulate_t<T>* to, int64_t* chosen);
    // Whether all numbers lie from 0 to rows - 1.
    bool are_rows(const int64_t* numbers, int64_t n, int64_t rows);
    // to[k] += from[k] * factor.
    template <class A> void add_row(const A* from, A factor, int64_t width, A* to);)

}  // namespace facula::cpu
