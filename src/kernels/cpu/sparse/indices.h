// Positions of the elements of sparse tensors: checked, numbered, sorted and matched.
#pragma once
#include "core/tensor.h"

namespace facula::cpu::sparse {

// All tensors here are contiguous, int64, on the CPU; indices are (dims, n), a column an element.

// The number of each position in row-major order. RuntimeError where one lies outside of `sizes`.
Tensor flat_positions(const Tensor& indices, IntSpan sizes);
// The positions (dims, n) that have these numbers (n).
Tensor positions_of(const Tensor& flat, IntSpan sizes);

// Equal numbers as groups, in ascending order of the numbers.
struct Groups {
  Tensor numbers;   // (groups): the number that each group's members have
  Tensor group_of;  // (n): the group of each member
  Tensor first;     // (groups): the place of each group's first member
};
Groups grouped(const Tensor& flat);
// Whether each number is larger than the one before.
bool strictly_ascending(const Tensor& flat);
// The order that sorts the numbers; equal ones stay in their order.
Tensor stable_order(const Tensor& flat);

// Two lists merged into one: numbers that meet while both are walked through stand once.
struct Merged {
  Tensor numbers;         // (n)
  Tensor from_a, from_b;  // where each member of a and of b went
};
Merged merged(const Tensor& a, const Tensor& b);

// For each member of `wanted` its place in `among`, which ascends strictly; -1 where it is not.
Tensor places_of(const Tensor& wanted, const Tensor& among);

// Pairs (i, j) with a[i] == b[j], in the order of i and then of j.
struct Pairs {
  Tensor first, second;
};
Pairs pairs_of_equals(const Tensor& a, const Tensor& b);

// Where the elements of each of `rows` rows begin, (rows + 1), from ascending row numbers.
Tensor row_starts(const Tensor& rows_of_elements, int64_t rows);
// The row of each element, (n), from where rows begin. RuntimeError unless they ascend from 0 to n.
Tensor rows_from_starts(const Tensor& starts, int64_t n);
// RuntimeError unless the starts of rows ascend from 0 to n.
void check_starts(const Tensor& starts, int64_t n);

}  // namespace facula::cpu::sparse
