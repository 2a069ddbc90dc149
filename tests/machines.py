"""Other machines than this one, for the fixture ``machine`` and for ``SKELLIPSOID_TESTS_MACHINE``.

As a program it prints the names of ``COMBINED``, for a loop over them.

What the environment can tell the libraries, it tells them: torch then computes without vector instructions, and a
temporary folder is on another file system. What only the package asks is answered in its place.
"""

import contextlib
import locale
import os
import pkgutil
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

#: Names the machine on which tests, and the processes that they start, run.
VARIABLE = "SKELLIPSOID_TESTS_MACHINE"
_PACKAGE = "skellipsoid._torch.machine"
_CORES = {"os.cpu_count", "os.sched_getaffinity"}
#: A file system in memory, as most Linux machines have it.
_OTHER_FILES = Path("/dev/shm")
#: The locale of a country with a decimal comma, and the folder in which it is made where it is not installed.
_COMMA, _LOCALES = "de_DE.UTF-8", Path(tempfile.gettempdir()) / "skellipsoid-locales"
_X86 = platform.machine() in ("x86_64", "AMD64")


class Machine(NamedTuple):
    """What is otherwise than here."""

    #: Answers, by the paths of functions that ask.
    answers: Mapping[str, Any] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})
    #: Whether the process takes the locale of the environment, as a program with a user interface does.
    sets_locale: bool = False


def _processor(architecture: str, **capabilities: bool) -> dict[str, Any]:
    return {f"{_PACKAGE}.instructions": {"architecture": architecture, **capabilities}}


def _set_locale(name: str) -> bool:
    with contextlib.suppress(locale.Error):
        return bool(locale.setlocale(locale.LC_ALL, name))
    return False


def _has_comma() -> bool:
    before = locale.setlocale(locale.LC_ALL)
    found = _set_locale(_COMMA)
    locale.setlocale(locale.LC_ALL, before)
    return found


def _cores(n_cores: int) -> dict[str, Any]:
    numbers = {"os.cpu_count": n_cores, "os.sched_getaffinity": set(range(n_cores))}
    return {**numbers, f"{_PACKAGE}.n_threads": n_cores}


MACHINES = {
    "amx": Machine(_processor("x86_64", avx2=True, avx512_f=True, avx512_vnni=True, amx_bf16=True)),
    "avx512": Machine(_processor("x86_64", avx2=True, avx512_f=True, avx512_vnni=True, amx_bf16=False)),
    "no_vector_extensions": Machine(
        _processor("x86_64", avx2=False, avx512_f=False, avx512_vnni=False, amx_bf16=False),
        # Read when the libraries are loaded: by the processes that a test starts, and by a suite on this machine.
        {
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
            **({"OPENBLAS_CORETYPE": "Nehalem"} if _X86 else {}),
        },
    ),
    "arm": Machine(_processor("aarch64", neon=True, sve=False)),
    "one_core": Machine(_cores(1)),
    "many_cores": Machine(_cores(64)),
    "little_memory": Machine({f"{_PACKAGE}.free_bytes": 2.0**28}),
    "no_gpu": Machine({f"{_PACKAGE}.has_gpu": False}, {"CUDA_VISIBLE_DEVICES": ""}),
    "ascii": Machine(environment={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
    "decimal_comma": Machine(
        environment={"LC_ALL": _COMMA, **({} if _has_comma() else {"LOCPATH": str(_LOCALES)})}, sets_locale=True
    ),
    "other_time_zone": Machine(environment={"TZ": "Pacific/Kiritimati"}),  # 14 hours before UTC
    "narrow_terminal": Machine(environment={"COLUMNS": "40"}),
    "no_home": Machine(
        # No folder can be made below it, by root neither.
        environment=dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/dev/null/home")
    ),
    "tmp_elsewhere": Machine(environment={"TMPDIR": str(_OTHER_FILES), "PYTEST_DEBUG_TEMPROOT": tempfile.gettempdir()}),
}
#: What asks, by the paths, where another machine answers.
HERE: dict[str, Any] = {}
PROCESSORS = ("amx", "avx512", "no_vector_extensions", "arm")
#: Machines that are otherwise in many ways at once: together each of the above, so that four runs are enough.
COMBINED = (
    "amx+one_core+decimal_comma+no_home",
    "avx512+many_cores+ascii+tmp_elsewhere",
    "no_vector_extensions+little_memory+other_time_zone",
    "arm+no_gpu+narrow_terminal+many_cores+decimal_comma",
)


def of(name: str) -> Machine:
    """Give a machine by its name, or one that is several at once by their names with ``+`` between."""
    parts = [MACHINES[part] for part in name.split("+")]
    answers = {path: answer for part in parts for path, answer in part.answers.items()}
    environment = {key: value for part in parts for key, value in part.environment.items()}
    return Machine(answers, environment, any(part.sets_locale for part in parts))


def chosen() -> str | None:
    """Give the name of the machine that the environment asks for."""
    name = os.environ.get(VARIABLE) or None
    if name is not None and not MACHINES.keys() >= {*name.split("+")}:
        raise ValueError(
            f"{VARIABLE} is {name!r}, but must be one of {', '.join(MACHINES)}, or several with + between; change it."
        )
    return name


def possible(name: str) -> str:
    """Give the parts of a machine that this one can be taken for; nothing if there are none."""
    is_elsewhere = tempfile.gettempdir() == str(_OTHER_FILES) or (
        _OTHER_FILES.is_dir() and _OTHER_FILES.stat().st_dev != Path(tempfile.gettempdir()).stat().st_dev
    )
    left_out = set() if is_elsewhere else {"tmp_elsewhere"}
    if "LOCPATH" in of(name).environment and not _is_made():
        left_out.add("decimal_comma")
    return "+".join(part for part in name.split("+") if part not in left_out)


def _is_made() -> bool:
    """Make the locale, unless another process has done so; whether it is there."""
    if not (_LOCALES / _COMMA).is_dir() and (tool := shutil.which("localedef")) is not None:
        with tempfile.TemporaryDirectory(dir=tempfile.gettempdir()) as folder:
            command = [tool, "-i", "de_DE", "-f", "UTF-8", f"{folder}/{_COMMA}"]
            subprocess.run(command, check=False, capture_output=True, env=os.environ | {"LC_ALL": "C"})
            with contextlib.suppress(OSError):
                Path(folder).rename(_LOCALES)
                Path(folder).mkdir()  # to be removed
    return (_LOCALES / _COMMA).is_dir()


def answer_as(name: str, replace: Any) -> None:
    """Answer as a machine does: ``replace`` sets an attribute of an object. The environment is set before."""
    for path, answer in of(name).answers.items():
        module, _, function = path.rpartition(".")
        if path not in _CORES or hasattr(os, function):
            found = pkgutil.resolve_name(module)
            HERE.setdefault(path, getattr(found, function))
            replace(found, function, lambda *given, _answer=answer: _answer)
    if of(name).sets_locale:
        locale.setlocale(locale.LC_ALL, "")


def answer_as_here(replace: Any) -> None:
    """Answer as this machine does, whatever machine the suite runs on."""
    for path, function in HERE.items():
        module, _, name = path.rpartition(".")
        replace(pkgutil.resolve_name(module), name, function)


# Before the libraries are loaded, which read it once.
if (_chosen := chosen()) is not None:
    if not (_possible := possible(_chosen)):
        raise RuntimeError(f"This machine cannot be taken for {_chosen}; unset {VARIABLE}.")
    os.environ.update(of(_possible).environment | {VARIABLE: _possible})

if __name__ == "__main__":
    sys.stdout.write("\n".join(COMBINED) + "\n")
