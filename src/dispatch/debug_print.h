// Prints calls of operators for FACULA_DEBUG.
#pragma once
#include <source_location>
#include <string>

#include "dispatch/call.h"

namespace facula {

// The name of a layer in Python and error texts: "CPU", "Autograd".
const char* layer_name(Layer layer);

// A value in brief, tensors without their elements: "float32[2, 3]", "[float32[2], int64[]]",
// "1.5", "'mean'".
std::string brief(const Value& v);

// "aten::add.Tensor(self=float32[2, 3], other=float32[3], alpha=1)"
std::string brief(const OpCall& c);

// Prints a call, runs it with `body`, and prints its results where layers are printed too.
void print_call(OpCall& c, void (*body)(OpCall&),
                std::source_location where = std::source_location::current());
void print_layer(const OpCall& c, Layer layer,
                 std::source_location where = std::source_location::current());

}  // namespace facula
