"""Devices, memory, and random numbers that are equal on every device."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch

from . import machine
from .threads import map_parts

#: Samples are processed in chunks of about this many bytes on a CPU, and where a GPU has little memory left.
CHUNK_BYTES = 64 * 2**20
#: Largest chunk on a GPU; chosen by hand, no GPU has measured it.
LARGEST_CHUNK_BYTES = 4 * 2**30
#: Proportion of a GPU's free memory that a chunk may take.
CHUNK_PROPORTION = 0.25
_CPU = torch.device("cpu")
#: Held by the thread that seeds torch's generators, or changes another setting of the whole process.
PROCESS_STATE = threading.RLock()
#: Held by the thread that builds an embedding model, tries it, or changes for a while what it computes. A training,
#: which may hold ``PROCESS_STATE`` for hours, does not hold it. A thread that holds it does not wait for
#: ``PROCESS_STATE``.
MODEL_STATE = threading.RLock()


def resolve_device(device: str | torch.device, *, fallback: bool = False) -> torch.device:
    """Turn a ``device`` parameter into a torch device.

    Parameters
    ----------
    device : str or torch.device
        ``"auto"`` is CUDA if it is available, else the CPU; every other value is torch's notation.
    fallback : bool, default=False
        Return the CPU instead of raising an error if the device does not exist: for a model that was fitted on a GPU
        and is used on a machine without one.

    Raises
    ------
    ValueError
        If torch does not know the device, or this machine does not have it.
    """
    if device == "auto":
        return torch.device("cuda" if machine.has_gpu() else "cpu")
    resolved = None
    try:
        resolved = torch.device(device)
        _check_values(resolved)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError, ImportError) as error:
        if fallback and resolved is not None:
            return torch.device("cpu")
        raise ValueError(
            f"device={device!r} is not available on this machine; use 'auto', 'cpu' or a device that torch lists here."
        ) from error
    return resolved


@lru_cache
def _check_values(device: torch.device) -> None:
    """Raise an error unless the device exists and has values, which "meta" has not; asked once, since it waits."""
    torch.empty(1, device=device).item()


def resolve_seed(random_state: int | np.random.RandomState | None) -> int:
    """Turn scikit-learn's ``random_state`` into one integer, drawn once per fit.

    ``None`` draws it from NumPy's global generator, as everywhere in scikit-learn; an integer moves no generator.
    """
    if random_state is None:
        return int(np.random.randint(2**31 - 1))  # noqa: NPY002
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


@contextmanager
def seeded_torch(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators (dropout uses them) inside the block, and restore them afterwards.

    Another thread waits at its own block: with the generators in common, neither fit could be repeated.
    """
    with kept_torch_state(device):
        torch.manual_seed(seed)
        yield


@contextmanager
def kept_torch_state(device: torch.device | None = None) -> Iterator[None]:
    """Restore torch's global generators after the block, which draws from them; one thread at a time."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with PROCESS_STATE, torch.random.fork_rng(devices=devices):
        yield


@contextmanager
def explain_out_of_memory(what: str, remedies: str, least_bytes: float = 0) -> Iterator[None]:
    """Turn torch's out-of-memory error into one with the user's sizes and remedies.

    If ``least_bytes`` are needed, and this machine has fewer left, the block does not begin: where memory is
    promised before it is there, the system would end the process.
    """
    if least_bytes and least_bytes > (free := machine.free_bytes()):
        raise MemoryError(
            f"Not enough memory for {what}: at least {least_bytes / 1e9:.1f} GB are needed, and {free / 1e9:.1f} GB "
            f"are free; {remedies}."
        )
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # The CPU allocator raises a plain RuntimeError, with other words on Windows than elsewhere.
        is_told = any(words in str(error) for words in ("not enough memory", "can't allocate memory"))
        if not (is_told or isinstance(error, MemoryError | torch.OutOfMemoryError)):
            raise
        raise MemoryError(f"Not enough memory for {what}; {remedies}.") from error


def chunk_bytes(device: torch.device) -> int:
    """Memory of one chunk of samples."""
    if device.type != "cuda":
        return CHUNK_BYTES
    free = int(CHUNK_PROPORTION * machine.free_gpu_bytes(device))
    return max(CHUNK_BYTES, min(free, LARGEST_CHUNK_BYTES))


def row_chunks(n_rows: int, bytes_per_row: int, device: torch.device = _CPU, *, n_parts: int = 1) -> Iterator[slice]:
    """Divide ``n_rows`` rows into at least ``n_parts`` slices of at most about ``chunk_bytes`` each."""
    size = max(1, min(chunk_bytes(device) // max(1, bytes_per_row), -(-n_rows // n_parts)))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def on_device(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """Copy an array to a device, without waiting for what the device has still to do."""
    return torch.from_numpy(values).to(device, non_blocking=True)


def eigh_of_many(matrices: torch.Tensor, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Eigenvalues and eigenvectors of the leading blocks of small symmetric matrices, as ``torch.linalg.eigh``.

    They are computed on the host: torch computes them one after another on a GPU. Zeros come first where blocks are
    smaller, in the values and in the columns of the vectors.
    """
    given = matrices.cpu()
    values, vectors = torch.zeros_like(given[:, 0]), torch.zeros_like(given)

    def solve(number: int) -> None:
        size = sizes[number]
        values[number, -size:], vectors[number, :size, -size:] = torch.linalg.eigh(given[number, :size, :size])

    # An eigendecomposition takes about ten times as long as a product.
    map_parts(solve, range(len(given)), sum(10 * size**2 for size in sizes))
    return values.to(matrices.device), vectors.to(matrices.device)
