// The table of functions that a kind of device implements, for facula's own code. It is not in
// device.h, so that a new entry recompiles only the files that use tables.
#pragma once
#include "core/device.h"
#include "facula/device.h"

namespace facula {

using DeviceTable = facula_device_table;
using DeviceProperties = facula_device_properties;
using StridedCopy = facula_strided_copy;

// Registers a kind and returns its number. The table is copied, as many bytes as its `size` says;
// what it points to must stay valid. RuntimeError for a name that is taken.
DeviceType register_device(const DeviceTable& table);

// The table of a kind, where missing entries are null, or a null pointer if the kind is not
// registered. Does not initialise the devices.
const DeviceTable* device_table(DeviceType type);
// The same for use: initialises the kind if that has not happened yet. RuntimeError if it is not
// registered, or if this process was forked from one that had initialised it.
const DeviceTable& running_table(DeviceType type);
inline const DeviceTable& running_table(Device d) { return running_table(d.type); }

// Raises facula.AcceleratorError with the device's error text when `code` is not 0; `what` names
// the entry of the table that returned it.
void check_device_code(int code, Device d, const char* what);
// Raises NotImplementedError: the device's table lacks what is needed.
[[noreturn]] void missing_entry(Device d, const char* entry);
template <class F>
F needed_entry(F entry, Device d, const char* name) {
  if (!entry) missing_entry(d, name);
  return entry;
}

}  // namespace facula
