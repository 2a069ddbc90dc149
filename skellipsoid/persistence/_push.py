"""Saves a fitted estimator to a repository on the Hugging Face hub, in one commit."""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skellipsoid_runtime._hub import NAME, download, http_error, is_offline, reason_of

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.text_estimators import TakesTexts
from .._core.warn import warn
from .._encoders.text_features import TextFeatures
from .._version import __version__
from ._card import parts_of, shown_name, write_card
from ._folder import CARD, MANIFEST, PARTS, CachedModel, manifest_bytes, read_manifest, sha256
from ._load import load_with_manifest
from ._save import packed
from ._sizes import any_size

_TAGS = ("open-set-classification", "out-of-distribution-detection", "safetensors")
#: Name of the data set in the metadata, unless it is given.
_HELD_OUT = "held-out samples"


def push_to_hub(
    model: Any,
    repo_id: str,
    *,
    provenance: Mapping[str, Any] | None = None,
    private: bool | None = None,
    revision: str | None = None,
    commit_message: str = "Push a model with skellipsoid",
    token: str | bool | None = None,
) -> str:
    """Save a fitted classifier, encoder or Pipeline to a repository on the Hugging Face hub.

    The repository gets the files that :func:`save` writes, in one commit, by ``huggingface_hub``. The model card also
    has the metadata that the hub shows: library, task, tags, the embedding model, and language, licence and metrics
    from ``provenance``.

    Parameters
    ----------
    model : estimator, Pipeline, str or Path
        An estimator as for :func:`save`; or a folder that it wrote, whose provenance is kept.
    repo_id : str
        Name of the repository, ``user/name``. It is created if it does not exist. An earlier model in it is replaced,
        and all other files stay, also a ``README.md`` that this function did not write.
    provenance : mapping of str, default=None
        As in :func:`save`. These of its entries become metadata, too: ``"language"`` (a code such as ``"en"``, or a
        list of them), ``"license"`` (such as ``"mit"``), ``"metrics"`` (a mapping of names to numbers) and
        ``"dataset"`` (the name of the data that the metrics were measured on).
    private : bool, default=None
        Whether a repository that is created is private; ``None`` is the default of your account or organisation.
    revision : str, default=None
        Branch to commit to, which is created if it does not exist; ``None`` is the main branch.
    commit_message : str
    token : str or bool, default=None
        Token with the right to write; ``None`` takes the one of ``hf auth login`` or of ``HF_TOKEN``. It is not kept.

    Returns
    -------
    commit : str
        Hash of the commit: ``load(repo_id, revision=commit)`` always loads this model.

    Raises
    ------
    TypeError
        As of :func:`save`; or if metadata are of the wrong type. Then nothing is sent.
    ValueError
        If ``repo_id`` is not the name of a repository.
    PermissionError
        If the hub refuses to write.
    ConnectionError
        If the hub cannot be reached, or refuses the commit. Then the model in the repository is unchanged.

    Warns
    -----
    UserWarning
        If the model holds its training texts, and ``private`` is not true.

    See Also
    --------
    load : Load the model, by the name of its repository.
    save : Save to a folder.

    Examples
    --------
    >>> import skellipsoid
    >>> facts = {"language": "en", "license": "mit", "metrics": {"f1": 0.93}}
    >>> commit = skellipsoid.push_to_hub(pipe, "user/intents", provenance=facts)  # doctest: +SKIP
    >>> again = skellipsoid.load("user/intents", revision=commit)  # doctest: +SKIP
    """
    if not (isinstance(repo_id, str) and NAME.fullmatch(repo_id)):
        raise ValueError(f"repo_id={repo_id!r} is not the name of a repository; pass one of the form 'user/name'.")
    if isinstance(model, str | os.PathLike):
        model, manifest = load_with_manifest(Path(model))
        provenance = {**manifest["provenance"], **(provenance or {})}
    model, manifest, files = packed(model, provenance)
    manifest = _without_paths(manifest)
    parts = parts_of(model)
    card = f"---\n{_metadata(parts, manifest['provenance'], repo_id)}\n---\n\n".encode()
    card += write_card(model, manifest, sum(map(len, files.values())), place=repo_id).encode()
    if not private and (n_texts := sum(len(getattr(part, "training_texts_", ())) for _, part in parts)):
        warn(
            f"The model holds {n_texts} training texts, which everybody who can read {repo_id!r} can read; fit it "
            "without keep_texts to leave them out."
        )
    manifest["readme_sha256"] = [sha256(card)]
    content = {f"{manifest['parts']}/{name}": part for name, part in files.items()}
    return _commit(
        repo_id,
        content | {MANIFEST: manifest_bytes(manifest), CARD: card},
        private=private,
        revision=revision,
        message=commit_message,
        token=token,
    )


def _without_paths(value: Any) -> Any:
    """Replace the path of a local embedding model in a manifest by its name."""
    if isinstance(value, list):
        return [_without_paths(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: shown_name(each) if key == "model_name" and isinstance(each, str) else _without_paths(each)
        for key, each in value.items()
    }


def _commit(
    repository: str,
    files: dict[str, bytes],
    *,
    private: bool | None,
    revision: str | None,
    message: str,
    token: str | bool | None,
) -> str:
    """Replace the model in a repository; returns the hash of the commit."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(token=token, library_name="skellipsoid", library_version=__version__)
    with _one_sentence(repository):
        api.create_repo(repository, private=private, exist_ok=True)
        if revision not in (None, "main"):
            api.create_branch(repository, branch=revision, exist_ok=True)
        info = api.model_info(repository, revision=revision)
        present = {each.rfilename for each in info.siblings or ()}
        if CARD in present and not _is_own_card(repository, info.sha, token):
            del files[CARD]
        replaced = sorted({first for first in (name.partition("/")[0] for name in present) if PARTS.fullmatch(first)})
        operations: list[Any] = [CommitOperationDelete(f"{folder}/", is_folder=True) for folder in replaced]
        operations += [CommitOperationAdd(name, content) for name, content in files.items()]
        commit = api.create_commit(repository, operations, commit_message=message, revision=revision)
        return str(commit.oid)


def _is_own_card(repository: str, commit: str | None, token: str | bool | None) -> bool:
    """Whether the model card in a repository is the one that was pushed last, and not the user's."""
    card, manifest = (download(name, repository, commit, token, any_size(name)) for name in (CARD, MANIFEST))
    if card is None or manifest is None:
        return False
    try:
        own = read_manifest(CachedModel(repository, manifest.parent.name, manifest.parent))[0]["readme_sha256"]
    except ValueError:  # not a model, so the card is the user's
        return False
    return isinstance(own, list) and sha256(card.read_bytes()) in own


@contextmanager
def _one_sentence(repository: str) -> Iterator[None]:
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        yield
    except (http_error(), OfflineModeIsEnabled, RuntimeError, ValueError) as error:  # wrong metadata, or no hub
        where = f"The model cannot be pushed to {repository!r}"
        if is_offline(error):
            raise ConnectionError(f"{where}: HF_HUB_OFFLINE forbids to ask the hub; unset it.") from error
        reason, status = reason_of(error)
        if status in (401, 403, 404):
            raise PermissionError(
                f"{where}, because the hub refuses ({reason}); check the name, and log in with `hf auth login`, or "
                "pass a token that may write to it."
            ) from error
        raise ConnectionError(
            f"{where} ({reason}), and the model that was there is unchanged; check the network, and push it again."
        ) from error


def _metadata(parts: list[tuple[str, Any]], provenance: dict[str, Any], repository: str) -> str:
    """Metadata of a model card in YAML, without the delimiters."""
    from huggingface_hub import EvalResult, ModelCardData

    task, text_model = _task(parts), _text_model(parts)
    metrics, dataset = _metrics(provenance), _texts(provenance, "dataset")
    name = dataset[0] if dataset else _HELD_OUT
    results = [
        EvalResult(task_type=task, dataset_type=name, dataset_name=name, metric_type=metric, metric_value=value)
        for metric, value in metrics.items()
    ]
    language, license_ = _texts(provenance, "language"), _texts(provenance, "license")
    data = ModelCardData(
        language=language[0] if len(language) == 1 else language or None,
        license=license_[0].lower() if license_ else None,  # as the hub spells them
        library_name="skellipsoid",
        tags=list(_TAGS),
        base_model=text_model,
        pipeline_tag=task,
        model_name=repository.partition("/")[2] if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml())


def _task(parts: list[tuple[str, Any]]) -> str:
    """Name of a model's task on the hub."""
    takes_texts = bool(parts) and isinstance(parts[0][1], TakesTexts | TextFeatures)
    if any(isinstance(part, BaseOpenSetClassifier) for _, part in parts):
        return "text-classification" if takes_texts else "tabular-classification"
    return "feature-extraction"


def _text_model(parts: list[tuple[str, Any]]) -> str | None:
    """Name on the hub of the embedding model, if it came from there."""
    for _, part in parts:
        name = str(getattr(part, "model_name", ""))
        if NAME.fullmatch(name) and not Path(name).exists():
            return name
    return None


def _texts(provenance: dict[str, Any], key: str) -> list[str]:
    """Return a fact as a list of strings."""
    value = provenance.get(key)
    found = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise TypeError(f"provenance[{key!r}] is {value!r}, but must be a string or a list of strings; change it.")
    return found


def _metrics(provenance: dict[str, Any]) -> dict[str, float]:
    """Return the numbers that a model card shows."""
    value = provenance.get("metrics")
    found = {} if value is None else value
    if not isinstance(found, dict) or not all(_is_finite(number) for number in found.values()):
        raise TypeError(
            f"provenance['metrics'] is {value!r}, but must be a mapping of names to numbers, such as {{'f1': 0.93}}; "
            "change it."
        )
    return found


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
