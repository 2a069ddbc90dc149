"""Costs of a run: seconds and peak memory; and the versions it ran with."""

import ctypes
import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from skellipsoid import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "sentence-transformers")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_CPU = Path("/proc/cpuinfo")
_MEBIBYTE = 2**20


def measured(work: Callable[[], Any], device: torch.device) -> tuple[Any, float, float | None]:
    """Do some work, and say what it cost: seconds, and memory beyond what the process held before, in MiB.

    On CUDA the memory is that of the device. It is ``None`` where it cannot be measured.
    """
    gc.collect(1)  # not the oldest generation: all of torch is in it, and going through it takes a quarter of a second
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before: float | None = torch.cuda.memory_allocated(device) / _MEBIBYTE
    else:
        before = _forget_peak()
    start = time.perf_counter()
    result = work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated(device) / _MEBIBYTE if device.type == "cuda" else _status("VmHWM")
    return result, seconds, None if before is None or peak is None else round(max(peak - before, 0.0), 1)


def versions() -> dict[str, str]:
    """Versions of this package and of what it computes with."""
    ours = {"skellipsoid": __version__, "python": platform.python_version(), "platform": sys.platform}
    return {**ours, **{name: version(name) for name in _PACKAGES}}


def processor() -> str:
    """Model of the CPU."""
    named = next((line.partition(":")[2].strip() for line in _lines(_CPU) if line.startswith("model name")), "")
    return named or platform.processor() or platform.machine()


def _forget_peak() -> float | None:
    """Let the kernel begin a new peak, and give the memory held now; ``None`` where only the all-time peak is known."""
    # Memory that earlier runs freed goes back to the system, or this run would seem to need none.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> float | None:
    return next((int(line.split()[1]) / 1024 for line in _lines(_STATUS) if line.startswith(f"{name}:")), None)


def _lines(path: Path) -> list[str]:
    """Lines of a file of the kernel, none on other systems."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
