// The table of a kind of device, as facula's own code sees it. Kept out of device.h, so that a new
// entry is compiled again only where tables are used.
#pragma once
#include "core/device.h"
#include "facula/device.h"

namespace facula {

using DeviceTable = facula_device_table;
using DeviceProperties = facula_device_properties;
using StridedCopy = facula_strided_copy;

// Registers a kind and returns its number. The table is copied as far as its size says; what it
// points to must outlive the process's use of it. A name that is taken raises RuntimeError.
DeviceType register_device(const DeviceTable& table);

// The table of a kind, entries that it lacks null; a null pointer where none is registered. Does
// not start the kind.
const DeviceTable* device_table(DeviceType type);
// The table of a kind that has been started, now if need be. Raises RuntimeError where none is
// registered, or where this process was forked from one that had started it.
const DeviceTable& running_table(DeviceType type);
inline const DeviceTable& running_table(Device d) { return running_table(d.type); }

// Raises facula.AcceleratorError with the device's words when `code` is not 0; `what` names the
// entry that gave it.
void check_device_code(int code, Device d, const char* what);
// Raises NotImplementedError: the device's table lacks what is needed.
[[noreturn]] void missing_entry(Device d, const char* entry);
template <class F>
F needed_entry(F entry, Device d, const char* name) {
  if (!entry) missing_entry(d, name);
  return entry;
}

}  // namespace facula
