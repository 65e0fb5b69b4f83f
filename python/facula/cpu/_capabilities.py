"""What Linux tells of the processor."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path
from types import MappingProxyType

# PyTorch's names, where Linux has other ones; the rest are the same without underscores.
_FLAGS = {"lzcnt": "abm", "sha": "sha_ni", "fma3": "fma", "clflush": "clflush", "sse3": "pni"}
_X86 = (
    "sse sse2 sse3 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx_vnni_int8 avx_vnni_int16 "
    "avx_ne_convert avx512_f avx512_cd avx512_dq avx512_bw avx512_vl avx512_ifma avx512_vbmi "
    "avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512_vnni avx512_bf16 avx512_fp16 "
    "avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx10_1 avx10_2 amx_tile amx_bf16 amx_int8 "
    "amx_fp16 fma3 fma4 f16c bmi bmi2 popcnt lzcnt aes sha clflush clflushopt clwb"
).split()


def _same_spelling(name):
    return name.replace("_", "")


@functools.lru_cache(maxsize=1)
def capabilities():
    """The read-only dict of `facula.cpu.get_capabilities`."""
    fields = _first_processor()
    flags = {_same_spelling(flag) for flag in fields.get("flags", "").split()}
    found = {}
    if platform.machine() in ("x86_64", "AMD64"):
        found = {name: _same_spelling(_FLAGS.get(name, name)) in flags for name in _X86}
        # BMI's first part has a number in Linux.
        found["bmi"] = "bmi1" in flags
    found.update(
        architecture=platform.machine(),
        cpu_name=fields.get("model name", platform.processor()),
        num_logical_cores=os.cpu_count() or 1,
        num_physical_cores=_count("core_id") or os.cpu_count() or 1,
        num_sockets=_count("physical_package_id") or 1,
        l1d_cache_size=_cache_bytes(1, "Data"),
        l2_cache_size=_cache_bytes(2, "Unified"),
    )
    return MappingProxyType(found)


def _read(path):
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first_processor():
    """The fields of /proc/cpuinfo's first entry."""
    entry = _read("/proc/cpuinfo").split("\n\n")[0]
    pairs = (line.partition(":") for line in entry.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _count(what):
    """How many different cores or sockets the processors belong to."""
    folders = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology")
    package = "physical_package_id"
    return len({(_read(f / package), _read(f / what)) for f in folders})


def _cache_bytes(level, kind):
    """The size of a cache of the first processor, 0 where it is not told."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if _read(folder / "level").strip() == str(level) and _read(folder / "type").strip() == kind:
            size = _read(folder / "size").strip()
            return int(size[:-1]) * {"K": 1024, "M": 1024**2}[size[-1]] if size else 0
    return 0
