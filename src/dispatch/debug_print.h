// Calls of operators as FACULA_DEBUG prints them.
#pragma once
#include <source_location>
#include <string>

#include "dispatch/call.h"

namespace facula {

// "CPU", "Autograd": a layer's name as Python and error texts know it.
const char* layer_name(Layer layer);

// "float32[2, 3]", "[float32[2], int64[]]", "1.5", "'mean'": a value without its numbers.
std::string brief(const Value& v);

// "aten::add.Tensor(self=float32[2, 3], other=float32[3], alpha=1)"
std::string brief(const OpCall& c);

// Prints a call and, where layers are printed too, what it gives; `body` runs it.
void print_call(OpCall& c, void (*body)(OpCall&),
                std::source_location where = std::source_location::current());
void print_layer(const OpCall& c, Layer layer,
                 std::source_location where = std::source_location::current());

}  // namespace facula
