"""What a benchmark runs: data sets, ratios, seeds, encoders and methods, from arguments or a TOML file."""

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.base import clone

from skellipsoid import SupConTextEncoder

from ._data import NAMED, TEXT_FILES, DataSpec
from ._encoders import TEXTS, EncoderSpec, SentenceModel, Texts
from ._methods import MethodSpec, check_params, encoder_names, make_method, make_own

_FINETUNE = ("none", "head", "full")
_DEFAULTS: dict[str, Any] = {
    "data": ("banking", "oos", "stackoverflow"),
    "ratios": (0.25, 0.5, 0.75),
    "seeds": (0, 1, 2, 3, 4),
    "encoders": ("head",),
    "methods": ("ellipsoid",),
    "n_splits": 5,
    "data_home": None,
}


class Plan(NamedTuple):
    """All that is run; every combination is one run."""

    data: list[DataSpec]
    ratios: list[float]
    seeds: list[int]
    encoders: list[EncoderSpec]
    methods: list[MethodSpec]
    n_splits: int
    data_home: str | None


def make_plan(plan: str | PathLike[str] | None, **given: Any) -> Plan:
    """Make a plan of a TOML file and of arguments, which come before what the file says; ``None`` is not given.

    An argument may call a data set, an encoder or a method by its name in the file.

    Raises
    ------
    ValueError
        If a name is unknown or twice, or if a value cannot be used.
    OSError
        If the file cannot be read.
    """
    read = _read(plan)
    chosen = {name: _by_name(value, read.get(name)) for name, value in given.items() if value is not None}
    settings = {**_DEFAULTS, **read, **chosen}
    n_splits = settings["n_splits"]
    if isinstance(n_splits, bool) or not isinstance(n_splits, int) or n_splits < 2:
        raise ValueError(f"n_splits is {n_splits!r}, but must be a whole number from 2 on.")
    made = Plan(
        _each("data", settings, _data),
        _each("ratios", settings, _ratio),
        _each("seeds", settings, _seed),
        _each("encoders", settings, _encoder),
        _each("methods", settings, _method),
        n_splits,
        None if settings["data_home"] is None else str(settings["data_home"]),
    )
    if "encoders" not in chosen:
        _check_named(made)
    return made


def _read(plan: str | PathLike[str] | None) -> dict[str, Any]:
    """Read a TOML file; its paths are relative to its folder."""
    if plan is None:
        return {}
    path = Path(plan)
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OSError(f"The plan {str(path)!r} cannot be read ({error.strerror}); pass a TOML file.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"The plan {str(path)!r} is not UTF-8; save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"The plan {str(path)!r} is not valid TOML ({error}).") from error
    unknown = sorted({*settings} - {*_DEFAULTS})
    if unknown:
        raise ValueError(f"The plan {str(path)!r} sets {unknown[0]!r}, which is unknown; use {', '.join(_DEFAULTS)}.")
    home = path.parent
    if "data_home" in settings:
        settings["data_home"] = str(home / settings["data_home"])
    for name, key in (("data", "path"), ("encoders", "model_name")):
        if isinstance(settings.get(name), list):  # anything else is refused later
            settings[name] = [_beside(home, entry, key) for entry in settings[name]]
    return settings


def _by_name(value: Any, listed: Any) -> Any:
    """Replace each name of an entry of the file by that entry."""
    if not isinstance(value, list | tuple) or not isinstance(listed, list):
        return value
    entries = {entry["name"]: entry for entry in listed if isinstance(entry, Mapping) and "name" in entry}
    return [entries.get(name, name) if isinstance(name, str) else name for name in value]


def _beside(home: Path, entry: Any, key: str) -> Any:
    """Make a path that is relative to the plan's folder one that holds everywhere."""
    if isinstance(entry, Mapping):
        return {**entry, key: _absolute(home, str(entry[key]))} if key in entry else entry
    if not isinstance(entry, str) or entry in NAMED:
        return entry
    start, separator, model = entry.partition(":")
    if key == "path" or (home / entry / "modules.json").exists():
        return _absolute(home, entry)
    return f"{start}:{_absolute(home, model)}" if separator else entry


def _absolute(home: Path, name: str) -> str:
    return str(home / name) if (home / name).exists() else name


def _each(name: str, settings: Mapping[str, Any], make: Callable[[Any], Any]) -> list[Any]:
    """Read the entries of a list, each with a name of its own."""
    values = settings[name]
    if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
        raise ValueError(f"{name} is {values!r}, but must be a list of at least one.")
    made = [make(value) for value in values]
    names = [getattr(each, "name", each) for each in made]
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise ValueError(f"{name} names {twice[0]!r} twice; give each a name of its own.")
    return made


def _check_named(plan: Plan) -> None:
    """Raise an error if a method names an encoder that the plan does not have."""
    names = [encoder.name for encoder in plan.encoders]
    for method in plan.methods:
        if method.encoder is not None and method.encoder not in names:
            raise ValueError(
                f"The method {method.name!r} is run with the encoder {method.encoder!r} alone, but encoders has "
                f"{', '.join(names)}; name one of these, or add it."
            )


def _data(entry: Any) -> DataSpec:
    fields = _fields("data", entry, "path", DataSpec._fields)
    path = fields.pop("path", None)
    if path in NAMED and "name" not in fields:
        return DataSpec(str(path))
    if path is None:
        if fields.get("name") in NAMED:
            return DataSpec(fields["name"])
        raise ValueError(f"data has {entry!r}, which names no data set; use {', '.join(NAMED)}, or give a path.")
    found = Path(path)
    is_texts = found.suffix.lower() in TEXT_FILES
    if not (found.is_dir() or (found.is_file() and (is_texts or found.suffix == ".npz"))):
        raise ValueError(
            f"data has {str(path)!r}, which is not a data set; use {', '.join(NAMED)}, a folder with train.tsv and "
            "test.tsv, a file of texts and labels (.csv, .tsv, .jsonl, .parquet, .xlsx), or a .npz file of features."
        )
    of_file = {*DataSpec._fields[3:]} & {*fields}
    if of_file and not (found.is_file() and is_texts):
        raise ValueError(f"data gives {min(of_file)} to {str(path)!r}, but only a single file of texts has it.")
    share = fields.get("test_share", 0.5)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise ValueError(f"test_share of {str(path)!r} is {share!r}, but must be above 0 and below 1.")
    told: dict[str, Any] = {
        name: str(value) if name != "test_share" else float(value) for name, value in fields.items()
    }
    return DataSpec(**{"name": found.resolve().stem, **told, "path": str(found.resolve())})


def _ratio(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"ratios has {value!r}, but the proportion of known classes must be above 0 and at most 1.")
    return float(value)


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**32:
        raise ValueError(f"seeds has {value!r}, but a seed must be a whole number from 0 to {2**32 - 1}.")
    return value


def _encoder(entry: Any) -> EncoderSpec:
    if not isinstance(entry, str | Mapping):
        return _own_encoder(None, entry, {})
    if isinstance(entry, str):
        finetune, separator, model = entry.partition(":")
        if Path(entry, "modules.json").exists():
            return EncoderSpec(Path(entry).resolve().name, SentenceModel(str(Path(entry).resolve())), is_own=True)
        if entry == TEXTS:
            return EncoderSpec(TEXTS, Texts(), is_own=True)
        if (separator and finetune not in _FINETUNE) or entry in encoder_names():
            return _own_encoder(None, entry, {})
        params: dict[str, Any] = {"finetune": finetune, "layers": "last", **({"model_name": model} if model else {})}
        name = entry
    elif "estimator" in entry:
        fields = _fields("encoders", entry, "estimator", ("name", "estimator", "params"))
        return _own_encoder(fields.get("name"), fields["estimator"], dict(fields.get("params", {})))
    else:
        allowed = {*inspect.signature(SupConTextEncoder).parameters} - {"random_state", "device", "verbose"}
        fields = _fields("encoders", entry, "name", ("name", *sorted(allowed)))
        name = fields.pop("name", None)
        params = {"finetune": "head", **fields}
        if name is None:
            raise ValueError(f"encoders has {dict(entry)!r} without a name; give it one for the tables.")
    if params["finetune"] not in _FINETUNE:
        raise ValueError(
            f"encoders has {params['finetune']!r}; use {', '.join(_FINETUNE)}, each with :MODEL if you like, "
            f"{', '.join(encoder_names())}, {TEXTS} for the texts themselves, a folder of sentence-transformers, or "
            "module:Class."
        )
    estimator = SupConTextEncoder(**params)
    check_params(f"The encoder {name!r}", estimator)
    return EncoderSpec(str(name), estimator)


def _own_encoder(name: str | None, estimator: Any, params: Mapping[str, Any]) -> EncoderSpec:
    """Make an encoder of ``module:Class``, or of an unfitted transformer of texts, for instance a Pipeline."""
    label = estimator.rpartition(":")[2] if isinstance(estimator, str) else type(estimator).__name__
    members = ("fit", "transform", "get_params")
    if isinstance(estimator, str):
        estimator = f"skellipsoid_bench.literature:{estimator}" if estimator in encoder_names() else estimator
        estimator = make_own(estimator, "encoder", "transformer", members)
    elif not all(hasattr(estimator, member) for member in members):
        raise ValueError(
            f"encoders has {estimator!r}, which is not a transformer; it needs fit, transform and get_params."
        )
    return EncoderSpec(name or label, clone(estimator).set_params(**params), is_own=True)


def _method(entry: Any) -> MethodSpec:
    if not isinstance(entry, str | Mapping):
        return make_method(None, entry, {}, {})
    fields = _fields("methods", entry, "estimator", ("name", "estimator", "params", "search", "encoder"))
    if "estimator" not in fields:
        raise ValueError(f"methods has {entry!r} without an estimator; name a method or module:Class.")
    return make_method(
        fields.get("name"),
        fields["estimator"],
        dict(fields.get("params", {})),
        dict(fields.get("search", {})),
        fields.get("encoder"),
    )


def _fields(what: str, entry: Any, alone: str, allowed: Sequence[str]) -> dict[str, Any]:
    """Read an entry that is a table, or a single value that stands for its field ``alone``."""
    if not isinstance(entry, Mapping):
        if not isinstance(entry, str | PathLike):
            raise ValueError(  # noqa: TRY004 - one kind of error for every plan
                f"{what} has {entry!r}; use a name or a table of {', '.join(allowed)}."
            )
        return {alone: entry}
    unknown = sorted({*entry} - {*allowed})
    if unknown:
        raise ValueError(f"{what} has a table with {unknown[0]!r}, which is unknown; use {', '.join(allowed)}.")
    return dict(entry)
