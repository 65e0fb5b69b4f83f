// Sums and maxima of rows of a table, built once per instruction set.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/half.h"
#include "kernels/cpu/simd/accumulate.h"
#include "kernels/cpu/simd/isa.h"

namespace facula::cpu {

// Bags of rows of a table, by number. Bag b has the numbers from starts[b] to starts[b + 1] - 1.
// Numbers are users' memory that others may change: each is tested where it is read.
template <class T>
struct TableBags {
  const T* table;
  int64_t rows, width;
  const int64_t* numbers;
  const T* scales;  // a factor for each number, or null
  const int64_t* starts;
  int64_t count;      // of bags
  int64_t padding;    // a row that is passed over
  bool mean = false;  // sums are divided by the number of rows that were not passed over
};

// Rows of gradients that are added to those of a table, in this order.
template <class A>
struct RowSums {
  const A* from;
  const int64_t* places;   // rows of `from`
  const int64_t* numbers;  // the table's row for each row of `from`
  int64_t count, width;
  int64_t padding;        // a row of the table that is passed over
  const int64_t* shares;  // by row of the table, what it divides; or null
};

FACULA_PER_ISA(
    // to = the sums of the bags' rows, in their order; sizes = how many were not passed over. False
    // where a number is no row. T: float, double, Half and BFloat16.
    template <class T> bool sum_bags(const TableBags<T>& bags, accumulate_t<T>* to, int64_t* sizes);
    // to = the greatest of each column over the rows of the one bag, 0 where there are none; chosen
    // = the row that has it, the first of equal ones, untouched where there are none. Returns how
    // many were met, or -1 where a number is no row.
    template <class T>
    int64_t max_rows(const TableBags<T>& bag, accumulate_t<T>* to, int64_t* chosen);
    // Whether all numbers lie from 0 to rows - 1.
    bool are_rows(const int64_t* numbers, int64_t n, int64_t rows);
    template <class A> void add_rows(const RowSums<A>& rows, A* to);)

}  // namespace facula::cpu
