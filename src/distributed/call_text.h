// Calls as text, and the comparison of what ranks call.
#pragma once
#include <span>
#include <string>

#include "distributed/engine.h"

namespace facula::distributed {

const char* name_of(Call call);
const char* name_of(Reduction reduction);
int64_t clock_ms();  // the same clock in all processes of a machine
// "all_reduce(sum) float32 [2, 3] at train.py:12"
std::string text_of(const CallRecord& record);
// Whether two ranks may meet with these calls.
bool agree(const CallRecord& a, const CallRecord& b);
// The text of the error if the calls of the ranks do not agree; empty if they do.
std::string disagreement(std::span<const CallRecord* const> calls, const std::string& group);
// For AllToAll: rows of sent[to] and then received[from], for each rank.
std::string disagreement_of_parts(std::span<const int64_t* const> rows, const std::string& group);

}  // namespace facula::distributed
