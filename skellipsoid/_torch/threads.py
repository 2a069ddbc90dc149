"""Threads: torch's operators use one each, and large independent parts of a computation one thread each.

Threads of torch that share an operator wait actively for each other. Beside another busy process a waiting thread takes
the core that the other one needs, and a fit of thousands of small operators takes ten times as long. So an operator has
one thread here, and threads of Python compute parts that need nothing of each other.
"""

# torch is imported where it is used: metrics and splitters need none of it, but import what needs threads.
import contextvars
import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import ThreadpoolController

from . import machine

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Elements of a part below which a thread for it costs more than it gains.
LEAST_OF_THREAD = 2**18
#: Called after each part that is computed; ``None`` where nobody watches.
_COUNT: contextvars.ContextVar[Callable[[], object] | None] = contextvars.ContextVar("count", default=None)


class _Limits(threading.local):
    """What this thread may use: ``None`` outside of ``one_thread_each``."""

    n_threads: int | None = None


_LIMITS = _Limits()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let torch's operators of this thread use one thread each inside the block.

    The settings of OpenMP and MKL that are changed are those of the calling thread. So other threads compute as before,
    and nothing has to be restored for them. ``torch.set_num_threads`` would also change what threads that begin
    meanwhile use from then on.
    """
    if _LIMITS.n_threads is not None:
        yield
        return
    _LIMITS.n_threads = machine.n_threads()
    mkl = _mkl_threads()
    before = mkl(1)
    try:
        with _openmp().limit(limits=1):
            yield
    finally:
        mkl(before)
        _LIMITS.n_threads = None


@contextmanager
def counting(count: Callable[[], object]) -> Iterator[None]:
    """Call ``count`` after each part that ``map_parts`` computes inside the block."""
    before = _COUNT.set(count)
    try:
        yield
    finally:
        _COUNT.reset(before)


def n_parts(n_elements: float) -> int:
    """Return the number of parts to divide a computation of this number of elements into, one for each thread."""
    return max(1, min(_LIMITS.n_threads or 1, int(n_elements / LEAST_OF_THREAD)))


def map_parts(
    function: Callable[[Item], Result], parts: Iterable[Item], n_elements: float, device: "torch.device | None" = None
) -> list[Result]:
    """Compute independent parts of a computation; on a CPU each in a thread, if they are large.

    Parameters
    ----------
    function : callable
        It must draw no random numbers.
    parts : iterable
    n_elements : float
        About the number of elements that all parts compute with.
    device : torch.device, optional
        Where they are computed; ``None`` is the CPU.
    """
    import torch

    items = list(parts)
    n_threads = min(_LIMITS.n_threads or 1, len(items))
    if n_threads < 2 or n_elements < LEAST_OF_THREAD * len(items) or (device and device.type != "cpu"):
        return _counted(map(function, items))
    context = contextvars.copy_context()
    inference, has_gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def compute(item: Item) -> Result:
        with one_thread_each(), torch.inference_mode(inference), torch.set_grad_enabled(has_gradients):
            _LIMITS.n_threads = 1
            return context.copy().run(function, item)

    with ThreadPoolExecutor(n_threads) as pool:
        return _counted(pool.map(compute, items))


def _counted(results: Iterable[Result]) -> list[Result]:
    found, count = [], _COUNT.get()
    for result in results:
        found.append(result)
        if count is not None:
            count()
    return found


@lru_cache
def _openmp() -> Any:
    """OpenMP of the libraries that are loaded."""
    return ThreadpoolController().select(user_api="openmp")


@lru_cache
def _mkl_threads() -> Callable[[int], int]:
    """Find what sets MKL's number of threads of the calling thread, and returns the one before, 0 for none."""
    import torch

    for library in sorted(Path(torch.__file__).parent.glob("lib/*torch_cpu.*")):
        found = getattr(ctypes.CDLL(str(library)), "MKL_Set_Num_Threads_Local", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return lambda n_threads: n_threads
