"""Counts the cores and the open files that this process may use. No other module of the runtime asks the machine."""

import os
from pathlib import Path

#: The quota of CPU time of a control group of Linux: microseconds, and of how many.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def count_cores(quota: Path = _QUOTA) -> int:
    """Count the cores that this process may use, by its affinity and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        used, period = quota.read_text(encoding="utf-8").split()
        return max(1, min(cores, int(used) // int(period)))
    except (OSError, ValueError):  # no control group, or "max"
        return cores


def count_handles() -> int | None:
    """Count the files and connections that this process may have open at a time; ``None`` is unlimited."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if most == resource.RLIM_INFINITY else most
