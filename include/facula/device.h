/* What a kind of device offers to facula: a table of functions, in C alone.
 *
 * A library fills in one table and registers it. `size` and `version` come first and are read: a
 * table built against an older header is shorter, and entries that it lacks count as null. Entries
 * marked optional may be null; what needs them raises NotImplementedError then, or takes the other
 * way that is named beside the entry.
 *
 * Entries that can fail return 0 for success or a code of the device's own, which error_text turns
 * into words. They may be called from any thread. `index` is the device within its kind, and
 * `stream` is a handle that create_stream gave, an external one, or null for the default stream of
 * the device. Work given to a stream may be done later, in the order in which it was given.
 */
#ifndef FACULA_DEVICE_H
#define FACULA_DEVICE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FACULA_DEVICE_TABLE_VERSION 1

/* Codes that facula reads; all others but 0 are the device's. */
#define FACULA_DEVICE_NOT_READY (-1)     /* of query_stream and query_event: work is left */
#define FACULA_DEVICE_NOT_SUPPORTED (-2) /* of copy_peer and copy_strided: take the other way */

/* The directions of a copy. */
#define FACULA_COPY_FROM_HOST 0
#define FACULA_COPY_TO_HOST 1
#define FACULA_COPY_WITHIN 2

/* Flags of events. */
#define FACULA_EVENT_TIMING 1u       /* elapsed_time may be asked for */
#define FACULA_EVENT_BLOCKING 2u     /* synchronize_event sleeps in place of spinning */
#define FACULA_EVENT_INTERPROCESS 4u /* may be shared with other processes */

/* Filled in by get_properties; facula sets `size` to what it knows, and the rest to zeros. */
typedef struct facula_device_properties {
  uint32_t size;
  char name[256];
  uint64_t total_memory; /* in bytes */
  int32_t major, minor;  /* of what the device can do */
  int32_t multi_processor_count;
  int32_t is_integrated; /* shares its memory with the host */
  uint8_t uuid[16];
} facula_device_properties;

/* Element by element, between tensors of one device: to[i] = from[i], converted between the dtypes,
 * and conjugated and negated where asked. Strides are in elements, 0 in `from` where it is
 * broadcast; dtypes are numbered as in PyTorch. */
typedef struct facula_strided_copy {
  uint32_t size;
  int32_t dims;
  void* to;
  const void* from;
  const int64_t* sizes;
  const int64_t* to_strides;
  const int64_t* from_strides;
  int32_t to_dtype, from_dtype;
  int32_t conjugate, negate;
} facula_strided_copy;

typedef struct facula_device_table {
  uint32_t size; /* sizeof(facula_device_table), as the library was compiled */
  uint32_t version;
  const char* name; /* "cuda", as in device strings */

  /* --- the kind */
  /* How many devices there are; 0 where none can be used. May be asked before `start`. */
  int (*device_count)(void);
  /* Optional. Called once, before anything else but device_count. */
  int (*start)(void);
  /* Optional. The thread's current device changed; for libraries that have such a state too. */
  int (*set_device)(int index);
  /* Optional. The words of a code; lives as long as the library. */
  const char* (*error_text)(int code);
  /* Optional. */
  int (*get_properties)(int index, facula_device_properties* properties);

  /* --- memory. facula keeps and reuses blocks itself: these are called for large ones only. */
  /* A block aligned to 256 bytes or more; 0 and a null block where there is no room. */
  int (*allocate)(int index, size_t bytes, void** data);
  /* Called when the device has nothing left to do. */
  int (*release)(int index, void* data, size_t bytes);
  /* Optional. Bytes that could be allocated now, and bytes in all. */
  int (*memory_info)(int index, size_t* free, size_t* total);
  /* Optional. Page-locked host memory, which copies may read and write late. */
  int (*allocate_pinned)(size_t bytes, void** data);
  int (*release_pinned)(void* data);
  /* Optional. Whether host memory that the library itself locked is known to it. */
  int (*is_pinned)(const void* data);

  /* --- copies, on a stream. Host memory stays valid until the stream has passed the copy. */
  /* Contiguous, between the host and this device or within it; blocks do not overlap. */
  int (*copy)(int index, void* to, const void* from, size_t bytes, int direction, void* stream);
  /* Optional (else by way of the host). From one device to another, on a stream of `from_index`. */
  int (*copy_peer)(int to_index, void* to, int from_index, const void* from, size_t bytes,
                   void* stream);
  /* Optional (else by a copy from the host). */
  int (*set_bytes)(int index, void* data, int value, size_t bytes, void* stream);
  /* Optional (else by way of the host). */
  int (*copy_strided)(int index, const facula_strided_copy* copy, void* stream);

  /* --- streams. Without create_stream there is the default stream alone. */
  /* Waits for all streams; returns the error of work that failed since it was last asked. */
  int (*synchronize)(int index);
  /* Optional. A lower number is a higher priority. */
  int (*create_stream)(int index, int priority, void** stream);
  int (*destroy_stream)(int index, void* stream);
  int (*query_stream)(int index, void* stream);
  int (*synchronize_stream)(int index, void* stream);
  int (*priority_range)(int* least, int* greatest);

  /* --- events. Optional, all or none: streams are waited for by the host without them. */
  int (*create_event)(int index, uint32_t flags, void** event);
  int (*destroy_event)(int index, void* event);
  int (*record_event)(int index, void* event, void* stream);
  /* The stream goes on when what was recorded is done. The event may be of another device. */
  int (*wait_event)(int index, void* event, void* stream);
  int (*query_event)(int index, void* event);
  int (*synchronize_event)(int index, void* event);
  int (*elapsed_time)(int index, void* start, void* end, double* milliseconds);

  /* --- capture of a stream. Optional, all or none: what it is given is kept, not run. */
  int (*begin_capture)(int index, void* stream);
  int (*end_capture)(int index, void* stream, void** graph);
  int (*replay_graph)(int index, void* graph, void* stream);
  int (*destroy_graph)(int index, void* graph);
} facula_device_table;

#ifdef __cplusplus
}
#endif
#endif
