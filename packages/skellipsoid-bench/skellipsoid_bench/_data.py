"""Data sets of a benchmark, and the case that a known-class ratio and a seed make of one."""

import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skellipsoid._base import as_kind_of, as_labels
from skellipsoid._samples.folds import validation_rows
from skellipsoid._text_files.read import read_table
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.model_selection import KnownClassSplit

from . import datasets
from ._identity import content_key

#: The open label in every benchmark; a data set's own is replaced by it.
OPEN = "-1"
PARTS = ("train", "dev", "test")
#: What a damaged .npz file raises: RuntimeError is a password, NotImplementedError an unknown compression.
DAMAGED = (ValueError, EOFError, OSError, BadZipFile, zlib.error, RuntimeError)
_FETCHERS: dict[str, Callable[..., Any]] = {
    "banking": datasets.fetch_banking77,
    "oos": datasets.fetch_clinc_oos,
    "stackoverflow": datasets.fetch_stackoverflow,
}
#: Data sets that need no path. The last ships with the package.
NAMED = (*_FETCHERS, "assistant")
#: Endings of a single file of texts and labels; of a workbook the first visible sheet is read.
TEXT_FILES = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".xlsx", ".xlsm", ".xls", ".ods"}


class DataSpec(NamedTuple):
    """What a plan says of a data set; ``path`` is ``None`` for those of ``NAMED``."""

    name: str
    path: str | None = None
    open_label: str = OPEN
    #: Of a single file of texts: its columns, and the proportion of each class that is the test part without a
    #: column of parts.
    text_column: str | None = None
    label_column: str | None = None
    split: str | None = None
    test_share: float = 0.3


class DataSet(NamedTuple):
    """All rows of a data set, whatever part they are of."""

    rows: NDArray[Any]  # (n_rows,) texts, or (n_rows, n_features)
    labels: NDArray[np.str_]  # (n_rows,)
    part: NDArray[np.str_]  # (n_rows,) "train", "dev" or "test"
    sha256: str

    @property
    def is_text(self) -> bool:
        """Whether the rows are texts, which an encoder turns into features."""
        return self.rows.ndim == 1


class Case(NamedTuple):
    """Rows of one case of the literature's protocol, as numbers of rows of the data set."""

    train: NDArray[np.int64]  # rows of known classes
    dev: NDArray[np.int64]  # likewise
    test: NDArray[np.int64]  # all rows
    truth: NDArray[np.str_]  # (n_test,) the class, or open


@lru_cache(maxsize=8)
def load_data(spec: DataSpec, data_home: str | None) -> DataSet:
    """Load a data set.

    Raises
    ------
    OSError
        If a file is missing.
    ValueError
        If a file is not what it must be, or if no training row is of a class.
    """
    parts = _named_parts(spec.name, data_home) if spec.path is None else _parts_of(spec, Path(spec.path))
    rows, labels = (np.concatenate([part[i] for part in parts.values()]) for i in (0, 1))
    part = np.repeat(list(parts), [len(found[1]) for found in parts.values()])
    labels = labels.astype(np.str_)
    if spec.open_label not in (OPEN, *labels):
        raise ValueError(
            f"No row of the data set {spec.name!r} has the open label {spec.open_label!r}; correct it, or leave "
            "it out if no row is open."
        )
    labels = np.where(labels == spec.open_label, OPEN, labels)
    if not (labels[part == "train"] != OPEN).any():
        raise ValueError(
            f"The data set {spec.name!r} has no training row of a class; every label is {spec.open_label!r}."
        )
    sha256 = content_key(rows.tolist() if rows.ndim == 1 else rows, labels, part)
    return DataSet(rows, labels, part, sha256)


def draw_case(data: DataSet, ratio: float, seed: int) -> Case:
    """Draw the known classes by the literature's protocol; every other class is open, and in the test samples alone."""
    classes = np.unique(data.labels[data.part == "train"])
    known = KnownClassSplit(ratio, seed).known_classes(classes[classes != OPEN])
    is_known = np.isin(data.labels, known)
    train, dev = (np.flatnonzero((data.part == part) & is_known) for part in ("train", "dev"))
    test = np.flatnonzero(data.part == "test")
    return Case(train, dev, test, np.where(is_known[test], data.labels[test], OPEN))


def _named_parts(name: str, data_home: str | None) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    if name == "assistant":
        return {part: load_assistant_intents(subset=part, return_X_y=True) for part in ("train", "test")}
    return {part: _FETCHERS[name](subset=part, data_home=data_home, return_X_y=True) for part in PARTS}


def _parts_of(spec: DataSpec, path: Path) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    found: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    if path.is_dir():
        for part in PARTS:
            files = [file for ending in ("tsv", "csv", "txt") if (file := path / f"{part}.{ending}").exists()]
            if files:
                found[part] = read_table(files[0])[:2]
            elif part != "dev":
                raise FileNotFoundError(
                    f"The folder {str(path)!r} has no {part}.tsv; a data set needs train.tsv and test.tsv, dev.tsv is "
                    "optional."
                )
        return found
    if path.suffix.lower() in TEXT_FILES:
        return _parts_of_file(spec, path)
    arrays = _arrays_of(path)
    parts = [part for part in PARTS if part != "dev" or "X_dev" in arrays]
    missing = [name for part in parts for name in (f"X_{part}", f"y_{part}") if name not in arrays]
    if missing:
        raise ValueError(
            f"{str(path)!r} holds the arrays {sorted(arrays)}, but {missing[0]} is missing; save X_train, y_train, "
            "X_test, y_test, and X_dev, y_dev where there are development samples."
        )
    return _checked_arrays(path, {part: (arrays[f"X_{part}"], arrays[f"y_{part}"]) for part in parts})


def _parts_of_file(spec: DataSpec, path: Path) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Read one file, whose column ``split`` says which part a row is of; without it a test part is drawn."""
    read: dict[str, Any] = {"text_column": spec.text_column, "kept": (spec.open_label,)}
    table = read_table(path, label_column=spec.label_column, **read)
    if spec.split is None:
        # Equal texts are in the same part.
        _, codes = np.unique(table.labels, return_inverse=True)
        _, blocks = np.unique(table.texts.astype(np.str_), return_inverse=True)
        part = np.where(validation_rows(codes, spec.test_share, np.random.default_rng(0), blocks), "test", "train")
    else:
        marks = read_table(path, label_column=spec.split, **read)
        of_row = dict(zip(marks.numbers.tolist(), marks.labels.astype(np.str_).tolist(), strict=True))
        part = np.array([of_row.get(number, "") for number in table.numbers.tolist()], dtype=np.str_)
        if wrong := sorted({*part.tolist()} - {*PARTS}):
            raise ValueError(
                f"The column {spec.split!r} of {str(path)!r} holds {wrong[0]!r}; write train, dev or test into each."
            )
    found = {name: (table.texts[part == name], table.labels[part == name]) for name in PARTS if (part == name).any()}
    for name in ("train", "test"):
        if name not in found:
            raise ValueError(f"{str(path)!r} has no row of the {name} part; give it rows, or leave split out.")
    return found


def _arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file:
        try:
            stored = np.load(file, allow_pickle=False)
            names = stored.files
        except (*DAMAGED, AttributeError) as error:  # a .npy file has no arrays inside
            raise ValueError(f"{str(path)!r} is not a .npz file of arrays; write it with numpy.savez.") from error
        arrays = {}
        for name in names:
            try:
                arrays[name] = stored[name]
            except DAMAGED as error:
                raise ValueError(
                    f"The array {name} of {str(path)!r} holds Python objects or is damaged; save texts and labels as "
                    "arrays of str, for instance y.astype(str)."
                ) from error
    return arrays


def _checked_arrays(
    path: Path, parts: Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Check that rows and labels belong together, and that the rows of all parts have the same features.

    Numbers as labels get a type in which NumPy joins those of all parts without rounding.
    """
    found: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    width = parts["train"][0].shape[1:]
    for part, (rows, labels) in parts.items():
        what = f"X_{part} of {str(path)!r}"
        is_text = rows.ndim == 1 and rows.dtype.kind == "U"
        if not is_text and (rows.ndim != 2 or rows.dtype.kind not in "biuf"):
            msg = f"{what} is {rows.dtype} of shape {rows.shape}; save numbers of shape (n_rows, n_features), or texts."
        elif labels.shape != rows.shape[:1]:
            msg = f"{what} has {len(rows)} rows, but y_{part} has the shape {labels.shape}; save one label for each."
        elif rows.shape[1:] != width:
            msg = f"{what} has {rows.shape[1:]} features, but X_train has {width}; save the same features for both."
        else:
            if len(labels) and labels.dtype.kind != "S":
                labels = as_labels(labels, f"y_{part} of {str(path)!r}")
            first = found.get("train", (rows, labels))[1]
            if {labels.dtype.kind, first.dtype.kind} <= {*"biuf"}:
                labels = as_kind_of(labels, first, f"y_{part} of {str(path)!r}", "y_train")
            found[part] = rows, labels
            continue
        raise ValueError(msg)
    return found
