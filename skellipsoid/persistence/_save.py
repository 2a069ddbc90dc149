"""Saves a fitted estimator to a folder, all files or none."""

import math
import platform
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ._card import parts_of, write_card
from ._describe import Backbones, describe, saved_form
from ._folder import (
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    Files,
    check_target,
    check_unchanged,
    explained_failure,
    locked,
    manifest_bytes,
    sha256,
    write_model,
)
from ._load import check_loadable
from ._sizes import check_sizes


def save(
    estimator: Any, folder: str | Path, *, overwrite: bool = False, provenance: Mapping[str, Any] | None = None
) -> None:
    """Save a fitted classifier, encoder or Pipeline, without pickle.

    The folder also gets a model card, ``README.md``, with the classes, parameters, versions and provenance of the
    model.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted: an :class:`EllipsoidOpenSetClassifier`, :class:`SupConTextEncoder`, :class:`TunedOperatingPointCV`, a
        classifier of :mod:`skellipsoid.baselines`, an :class:`OpenShareMonitor` with all that it has seen, or a
        Pipeline of these classifiers and encoders, ``"passthrough"`` and scikit-learn's ``StandardScaler``,
        ``Normalizer``, ``PCA``, ``TruncatedSVD`` and ``FrozenEstimator`` (around any of these). The cache of a Pipeline
        (``memory``) is not part of the model. A fitted search is saved as its best estimator, and imbalanced-learn's
        Pipeline without its samplers, which act only in a fit.
    folder : str or Path
        Folder of the model. An interrupted save does not change an earlier model in it.
    overwrite : bool, default=False
        Whether to replace a model in the folder, also one saved since this one was loaded. Other files stay, also a
        ``README.md`` that ``save`` did not write.
    provenance : mapping of str, default=None
        Origin of the model, for the manifest and the model card: values that JSON can hold, such as
        ``{"n_texts": 812, "data_check": {"near_duplicates": 3}, "report": "…"}``. The hash of the training data
        is added if an encoder of the model recorded it (``training_data_sha256_``).

    Raises
    ------
    TypeError
        If the estimator, or a step, is of another class, or if it or ``provenance`` holds a value that JSON cannot
        hold. Then nothing is written.
    ValueError
        If ``load`` would refuse the model, for instance because a fitted attribute or a parameter was set to an invalid
        value. Then nothing is written.
    FileExistsError
        If the folder holds anything and ``overwrite`` is false, or if it holds something other than a saved model.
    OSError
        If the folder cannot be written; the message names the folder and the space that the model needs. The folder is
        then unchanged.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    Warns
    -----
    UserWarning
        If the model is saved, but its model card cannot be written.

    See Also
    --------
    load : Load the model.
    push_to_hub : Save a model to the Hugging Face hub.

    Examples
    --------
    >>> import tempfile, numpy as np, skellipsoid
    >>> X, y = np.array([[0.0], [1.0], [9.0], [10.0]] * 5), [0, 0, 1, 1] * 5
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     skellipsoid.save(clf, parent + "/model", provenance={"data": "made up"})
    ...     skellipsoid.load(parent + "/model").predict([[0.5], [500.0]]).tolist()
    [0, -1]
    """
    _save(estimator, Path(folder), provenance, partial(check_target, overwrite=overwrite))


def save_changed(estimator: Any, folder: Path, loaded: str | None, provenance: Mapping[str, Any] | None) -> None:
    """Replace the model whose manifest has this hash; ``None``: the folder must hold no model.

    Raises
    ------
    FileExistsError
        As ``save``, and if another save has changed the model since.
    """
    _save(estimator, folder, provenance, partial(check_unchanged, loaded=loaded))


def _save(estimator: Any, target: Path, provenance: Mapping[str, Any] | None, check: Callable[[Path], None]) -> None:
    """Save to a folder, unless ``check`` refuses it."""
    estimator, manifest, files = packed(estimator, provenance)
    n_bytes = sum(map(len, files.values()))
    card = write_card(estimator, manifest, n_bytes).encode()
    check(target)
    is_new = not target.exists()
    try:
        with explained_failure(target, n_bytes):
            target.mkdir(parents=True, exist_ok=True)
        with locked(target) as is_locked:
            check(target)  # another save may have come first
            with explained_failure(target, n_bytes):
                write_model(target, manifest, files, card, is_locked=is_locked)
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                target.rmdir()


def packed(estimator: Any, provenance: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any], Files]:
    """Return the estimator to save, its manifest, and its files by path below the folder of parts."""
    estimator = saved_form(estimator)
    backbones: Backbones = {}
    model, files = describe(estimator, backbones)
    check_loadable(model, files, backbones)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "skellipsoid_version": __version__,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "provenance": _recorded(estimator) | _checked(provenance),
        "parts": f"parts-{secrets.token_hex(8)}",
        "model": model,
        "sha256": {name: sha256(content) for name, content in files.items()},
        "sizes": {name: len(content) for name, content in files.items()},
    }
    check_sizes(files | {MANIFEST: manifest_bytes(manifest)})
    return estimator, manifest, files


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"skellipsoid": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "torch", "sentence-transformers", "transformers"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # installed without its description
            found[name] = None
    return found


def _recorded(estimator: Any) -> dict[str, Any]:
    """Collect the sources and training data that the estimators record."""
    hashes = [getattr(part, "training_data_sha256_", None) for _, part in parts_of(estimator)]
    found = {
        "loaded_from": getattr(estimator, "loaded_from_", None),
        "training_data_sha256": next(filter(None, hashes), None),
    }
    return {name: value for name, value in found.items() if value}


def _checked(provenance: Any) -> dict[str, Any]:
    if provenance is not None and not isinstance(provenance, Mapping):
        kind = type(provenance).__name__
        raise TypeError(
            f"provenance is {provenance!r} of type {kind}, but must be a mapping; pass a dict of names and facts."
        )
    checked: dict[str, Any] = _plain(provenance or {}, "provenance")
    return checked


def _plain(value: Any, what: str) -> Any:
    """Check that a value survives JSON unchanged; NumPy's numbers become Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, f"{what}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{what} has the key {key!r}, but its keys must be strings; convert them.")
        return {key: _plain(item, f"{what}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"{what} is {value!r} of type {type(value).__name__}, but must be what JSON can hold: strings, finite numbers, "
        "Booleans, None, lists or mappings of them; convert it, for instance with str."
    )
