"""Save a fitted estimator to a folder, completely or not at all."""

import math
import os
import platform
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .._core.files import to_disk
from .._core.warn import warn
from .._version import __version__
from ._card import parts_of, write_card
from ._describe import describe
from ._folder import (
    CARD,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    Files,
    explained_failure,
    is_unfinished,
    locked,
    manifest_bytes,
    read_manifest,
    remove_replaced,
    sha256,
    write_files,
)


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
        (``memory``) is not part of the model.
    folder : str or Path
        Folder of the model. An interrupted save does not change an earlier model in it.
    overwrite : bool, default=False
        Whether to replace a model in the folder. Other files stay, also a ``README.md`` that ``save`` did not write.
    provenance : mapping of str, default=None
        Origin of the model, for the manifest and the model card: values that JSON can hold, such as
        ``{"n_texts": 812, "data_check": {"near_duplicates": 3}, "report": "…"}``. The hash of the training data
        is added if an encoder of the model recorded it (``training_data_sha256_``).

    Raises
    ------
    TypeError
        If the estimator, or a step, is of another class, or if it or ``provenance`` holds a value that JSON cannot
        hold. Then nothing is written.
    FileExistsError
        If the folder holds anything and ``overwrite`` is false, or if it holds something other than a saved model.
    OSError
        If the folder cannot be written; the message names the folder and the space that the model needs. What was there
        before stays.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    Warns
    -----
    UserWarning
        If the model is saved, but its model card cannot be written.

    See Also
    --------
    load : Load the model.

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
    target = Path(folder)
    model, files = describe(estimator)
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
    }
    n_bytes = sum(map(len, files.values()))
    card = write_card(estimator, manifest, n_bytes).encode()
    _check_target(target, overwrite)
    is_new = not target.exists()
    try:
        with explained_failure(target, n_bytes):
            target.mkdir(parents=True, exist_ok=True)
        with locked(target) as held:
            _check_target(target, overwrite)  # another save may have been first
            with explained_failure(target, n_bytes):
                _write(target, manifest, files, card, held=held)
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                target.rmdir()


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"skellipsoid": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "torch", "sentence-transformers", "transformers"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # installed without its description
            found[name] = None
    return found


def _recorded(estimator: Any) -> dict[str, Any]:
    """Collect the records of the estimators about their training data."""
    hashes = [getattr(part, "training_data_sha256_", None) for _, part in parts_of(estimator)]
    return {"training_data_sha256": found} if (found := next(filter(None, hashes), None)) else {}


def _checked(provenance: Any) -> dict[str, Any]:
    if provenance is not None and not isinstance(provenance, Mapping):
        kind = type(provenance).__name__
        raise TypeError(
            f"provenance is {provenance!r} of type {kind}, but must be a mapping; pass a dict of names and facts."
        )
    checked: dict[str, Any] = _plain(provenance or {}, "provenance")
    return checked


def _plain(value: Any, what: str) -> Any:
    """Check that JSON gives a value back as it is; NumPy's numbers become Python's."""
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


def _check_target(target: Path, overwrite: bool) -> None:
    """Refuse a folder that must not be touched: only what ``save`` wrote is replaced."""
    if not target.exists() or (target.is_dir() and all(is_unfinished(path) for path in target.iterdir())):
        return
    if not overwrite:
        raise FileExistsError(
            f"{str(target)!r} exists; pass overwrite=True to replace a model that was saved there, or another folder."
        )
    try:
        read_manifest(target)
    except ValueError as error:
        raise FileExistsError(
            f"{str(target)!r} holds something other than a saved model, which is left alone; pass another folder."
        ) from error


def _write(target: Path, manifest: dict[str, Any], files: Files, card: bytes, *, held: bool) -> None:
    """Write the new parts beside the old ones, if there are any; then replace the manifest, which names them."""
    parts, path, old = manifest["parts"], target / CARD, _present(target)
    own = old.get("readme_sha256")
    present = sha256(path.read_bytes()) if path.is_file() and not path.is_symlink() else None
    # A card that save did not write, or that was changed since, is the user's.
    writes_card = isinstance(own, list) and present in own if present else not os.path.lexists(path)
    suffix = f"{secrets.token_hex(4)}.tmp"
    new_manifest, new_card = target / f"{MANIFEST}.{suffix}", target / f"{CARD}.{suffix}"
    try:
        write_files(files, target / parts)
        if writes_card:
            new_card.write_bytes(card)
            to_disk(new_card)
        # The present card too: killed before it is replaced, the next save knows it.
        hashes = [sha256(card), present] if present else [sha256(card)]
        new_manifest.write_bytes(manifest_bytes(manifest | {"readme_sha256": hashes if writes_card else []}))
        to_disk(target / parts)
        to_disk(new_manifest)
        new_manifest.replace(target / MANIFEST)
    except BaseException:
        if _present(target).get("parts") != parts:
            shutil.rmtree(target / parts, ignore_errors=True)
        new_manifest.unlink(missing_ok=True)
        new_card.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the new manifest is there in any case
        to_disk(target, below=False)
    if writes_card:
        try:
            new_card.replace(path)
        except OSError as error:
            new_card.unlink(missing_ok=True)
            warn(f"The model is saved, but its model card {str(path)!r} cannot be written ({error}).")
    with suppress(OSError):  # leftovers harm nothing, and the next save removes them
        remove_replaced(target, parts, str(old.get("parts")), held=held)


def _present(target: Path) -> dict[str, Any]:
    """Read the manifest of the model in a folder, empty without one."""
    return read_manifest(target)[0] if os.path.lexists(target / MANIFEST) else {}
