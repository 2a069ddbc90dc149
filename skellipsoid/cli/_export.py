"""The command ``export``: a model as one ONNX graph, beside it or in another folder."""

import argparse
import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skellipsoid_runtime._folder import MANIFEST
from skellipsoid_runtime._install import how_to_install

from .._core.files import replacing
from .._core.pipelines import split_estimator
from .._core.warn import warn
from .._encoders.supcon import SupConTextEncoder
from .._onnx.export import exported_files
from .._onnx.folder import check_target, write_export
from ..persistence._folder import Files, locked, read_manifest
from ._beside import FOLDER, NAMES_EXPORT, is_of_export, read_export
from ._use import load_model, use_once

#: What serves an export, beside onnxruntime, which an export itself needs.
_SERVER = ("fastapi", "uvicorn", "prometheus_client")


def export(options: argparse.Namespace) -> None:
    """Write a model as one ONNX graph."""
    beside: Path = (options.model / FOLDER).resolve()
    target: Path = beside if options.out is None else options.out.resolve()
    is_beside = target == beside
    overwrite = options.out is None or options.overwrite
    check_target(target, overwrite=overwrite)
    if options.out is None:
        _check_replaced(options.model)
    model, manifest = load_model(options.model, options, is_used=False)
    is_reduced = _is_reduced(model)
    if is_beside and is_reduced:
        raise ValueError(
            f'The encoder of the model in {str(options.model)!r} has dtype="bfloat16", but an export computes in '
            'single precision, so that predictions near the threshold differ; set dtype="float32" and save the model '
            "again, or pass --out with another folder."
        )
    use_once(model, options.model)
    made_of = _made_of(model, manifest)
    # Wherever it is moved to, predict uses no export whose predictions differ.
    named = None if is_reduced else made_of
    files = exported_files(model, target, quantize=options.quantize, overwrite=overwrite, made_of=named)
    if is_beside:
        _write_beside(options, target, files, made_of)
    else:
        write_export(target, files)
    _say_where(options.out or options.model / FOLDER, sum(map(len, files.values())), is_beside=is_beside)


def _say_where(folder: Path, n_bytes: int, *, is_beside: bool) -> None:
    """Say where the export is, and which command uses it."""
    said = f"The export is in {folder} ({n_bytes / 1e6:.1f} MB)"
    if is_beside:
        print(f"{said}; predict uses it with equal predictions, and starts sooner.")
        return
    print(f"{said}; serve it with: skellipsoid-serve --model {folder}")
    if not all(map(find_spec, _SERVER)):
        how = how_to_install("skellipsoid-runtime[serve]")
        warn(f"skellipsoid-serve is not installed, or without what it needs: {how}.")


def _check_replaced(model: Path) -> None:
    """Refuse to replace an export beside a model that was put there by other means."""
    folder = model / FOLDER
    if not (folder / MANIFEST).exists():
        return
    remedy = "move it elsewhere, or pass --out with another folder."
    try:
        manifest = read_export(folder)
    except ValueError as error:
        raise FileExistsError(f"{str(error).rstrip('.')}, so nothing says who wrote it; {remedy}") from error
    if not is_of_export(manifest):
        found = "has 8-bit integers" if manifest["quantized"] else "was not written by this command"
        raise FileExistsError(f"The export in {str(folder)!r} {found}, so it is not replaced; {remedy}")


def _is_reduced(model: Any) -> bool:
    """Whether a model computes in half precision, and so not as its graph."""
    return any(isinstance(step, SupConTextEncoder) and step.dtype == "bfloat16" for step in split_estimator(model)[0])


def _made_of(model: Any, manifest: dict[str, Any]) -> dict[str, Any]:
    """Say of which saved model an export is made, and what else ``predict`` needs to predict as it does."""
    usual = getattr(split_estimator(model)[1], "_norm_range", None)
    return {
        "manifest_sha256": manifest["manifest_sha256"],
        "norm_range": None if usual is None else usual.tolist(),
    }


def _write_beside(options: argparse.Namespace, target: Path, files: Files, made_of: dict[str, Any]) -> None:
    """Write an export into the folder of its model, which names it, unless that was changed meanwhile."""
    folder: Path = options.model
    with locked(folder):
        if read_manifest(folder)[0]["manifest_sha256"] != made_of["manifest_sha256"]:
            raise FileExistsError(
                f"The model in {str(folder)!r} was changed meanwhile, and the export of what it was is not written; "
                "run the command again."
            )
        check_target(target, overwrite=options.out is None or options.overwrite)  # another export may have been first
        if options.out is None:
            _check_replaced(folder)
        write_export(target, files)
        with replacing(folder / NAMES_EXPORT) as named:
            named.write_text(hashlib.sha256(files[MANIFEST]).hexdigest() + "\n", encoding="ascii")
