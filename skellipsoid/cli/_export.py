"""The command ``export``: a model as one ONNX graph, beside it or in another folder."""

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._core.pipelines import split_estimator
from .._core.warn import warn
from .._onnx.export import exported_files
from .._onnx.folder import check_target, write_export
from ..persistence._folder import Files, locked, read_manifest
from ..persistence._hub import is_hub_name
from ._beside import FOLDER, NEEDED
from ._use import load_model


def export(options: argparse.Namespace) -> None:
    """Write a model as one ONNX graph."""
    _check_options(options)
    is_beside = options.out is None
    target: Path = (options.model / FOLDER if is_beside else options.out).resolve()
    overwrite = is_beside or options.overwrite
    check_target(target, overwrite=overwrite)
    model, manifest = load_model(options.model, options)
    made_of = _made_of(model, manifest)
    files = exported_files(model, target, quantize=options.quantize, overwrite=overwrite, made_of=made_of)
    if is_beside:
        _write_beside(options.model, target, files, made_of)
    else:
        write_export(target, files)
    folder = options.model / FOLDER if is_beside else options.out
    size = f"{sum(map(len, files.values())) / 1e6:.1f} MB"
    if not is_beside:
        print(f"The export is in {folder} ({size}); serve it with: skellipsoid-serve --model {folder}")
        return
    print(f"The export is in {folder} ({size}); predict answers with it as with the model, and starts sooner.")
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        warn(f"predict uses the export once {missing[0].replace('_', '-')} is installed, which it is not here.")


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if options.out is not None:
        return
    if options.quantize:
        msg = (
            "--quantize changes answers a little, and predict never uses such an export by itself; pass --out with a "
            "folder for it, or leave --quantize out."
        )
    elif options.overwrite:
        msg = "--overwrite replaces the export in the folder of --out; name the folder, or leave --overwrite out."
    elif is_hub_name(options.model.as_posix()):
        msg = f"The model {options.model.as_posix()!r} is on the hub, and no folder is beside it; pass --out with one."
    else:
        return
    raise ValueError(msg)


def _made_of(model: Any, manifest: dict[str, Any]) -> dict[str, Any]:
    """Say of which saved model an export is made, and what else ``predict`` needs to answer as it does."""
    usual = getattr(split_estimator(model)[1], "_norm_range", None)
    return {
        "manifest_sha256": manifest["manifest_sha256"],
        "norm_range": None if usual is None else usual.tolist(),
    }


def _write_beside(folder: Path, target: Path, files: Files, made_of: dict[str, Any]) -> None:
    """Write an export into the folder of its model, unless that was changed meanwhile."""
    with locked(folder):
        if read_manifest(folder)[0]["manifest_sha256"] != made_of["manifest_sha256"]:
            raise FileExistsError(
                f"The model in {str(folder)!r} was changed meanwhile, and the export of what it was is not written; "
                "run the command again."
            )
        check_target(target, overwrite=True)  # another export may have been first
        write_export(target, files)
