"""Cores, memory and devices of this machine. No other module asks it: ``tests/test_machine.py`` finds one that does.

Others call these functions through the module, so that a test can put another machine in their place.
"""

# torch is imported where it is asked: commands that need none of it ask for cores and terminals.
import math
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import torch

#: Where Linux says how much memory is left, to all and to a container.
_MEMORY, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def instructions() -> dict[str, Any]:
    """Say what the processor can do, by torch's names such as ``"amx_bf16"``; nothing where torch does not tell it."""
    import torch

    read: Any = getattr(torch.cpu, "get_capabilities", dict)  # not in old versions of torch
    found: dict[str, Any] = read()
    return found


def n_cores() -> int:
    """Cores that this process may use; as for torch, OMP_NUM_THREADS says otherwise."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isascii() and wanted.isdigit() and int(wanted):
        return min(int(wanted), os.cpu_count() or 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads() -> int:
    """Threads that an operator of torch takes."""
    import torch

    return torch.get_num_threads()


def has_gpu() -> bool:
    """Whether there is a GPU that torch can use."""
    import torch

    return torch.cuda.is_available()


def free_bytes() -> float:
    """Memory that is left to this process, of the machine and of a container's limit; infinite where nobody says it."""
    found = [math.inf]
    with suppress(OSError, ValueError, StopIteration):
        lines = _MEMORY.read_text(encoding="utf-8").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(1024 * int(line.split()[1]))
    with suppress(OSError, ValueError, KeyError):  # a limit of "max" is no number
        names = ("max", "current", "stat")
        limit, used, stat = ((_CONTAINER / f"memory.{name}").read_text(encoding="utf-8") for name in names)
        parts = dict(line.split() for line in stat.splitlines())
        # What is cached of files can be given back, but for memory that processes share.
        found.append(int(limit) - int(used) + int(parts["file"]) - int(parts["shmem"]))
    return min(found)


def free_gpu_bytes(device: "torch.device") -> int:
    """Memory of a GPU that is left, also that which torch holds without using it."""
    import torch

    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads or writes a stream, which is no file or pipe then."""
    return stream.isatty()


def scratch_folder() -> TemporaryDirectory[str]:
    """Make a folder for what is read back and removed: it may be on another file system than every other folder.

    So nothing is moved out of it. What is to take the place of something is written beside that.
    """
    return TemporaryDirectory()
