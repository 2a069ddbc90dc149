"""Number of tokens of texts, and the largest number that an embedding model reads, without loading its weights."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .backbone import WINDOW, TextBackbone
from .embedding_model import read_as_letters
from .known_tokens import readable_tokens
from .model_lookup import default_prompt, folder_of, hub_is_reachable, hub_names, not_found
from .positions import NO_LIMIT, USUAL_LIMIT, check_length, n_positions, table_size, without_weights
from .tokenizer_rules import encode

#: Files of an embedding model that are not its weights.
_WITHOUT_WEIGHTS = ("*.json", "*.txt", "*.model", "*.jinja")


class Counts(NamedTuple):
    """Tokens of each text, (n_texts,) each."""

    #: All, those of the prompt and special ones included.
    total: NDArray[np.int64]
    #: Of the text alone; those of them that the vocabulary does not have; and those that say something.
    own: NDArray[np.int64]
    unknown: NDArray[np.int64]
    readable: NDArray[np.int64]


class Tokenizer(NamedTuple):
    """The tokenizer of an embedding model, and the model's limit of tokens per text."""

    tokenizer: Any
    longest: int
    lower: bool = False
    prompt: str = ""

    @classmethod
    def load(
        cls, name: str, max_length: int | None = None, prompt: str | None = None, *, local: bool = False
    ) -> "Tokenizer":
        """Load the tokenizer of a model by folder or name, looked up as ``TextBackbone.load`` does.

        Parameters
        ----------
        name : str
        max_length : int or None
            Largest number of tokens of a text; ``None`` is the model's own limit.
        prompt : str or None
            Stands before every text; ``None`` is the model's default.
        local : bool
            Whether to search on this machine only.

        Raises
        ------
        OSError
            If the model is not found.
        ValueError
            If the model has fewer positions than ``max_length``.
        """
        folder = folder_of(name) or _hub_folder(name, local=local)
        try:
            found, positions = cls._of_folder(folder, max_length, prompt)
        except (OSError, ValueError, KeyError) as error:
            raise OSError(
                f"The folder {str(folder)!r} holds no tokenizer that can be loaded ({error}); pass another folder."
            ) from error
        check_length(max_length, positions, f"the embedding model {name!r}")
        return found._replace(longest=max_length or found.longest)

    @classmethod
    def of_backbone(cls, backbone: TextBackbone) -> "Tokenizer":
        """Take the tokenizer of an embedding model without building the model."""
        return cls(backbone.tokenizer(), backbone.longest, backbone.lowers, backbone.prompt)

    @classmethod
    def _of_folder(cls, folder: Path, max_length: int | None, prompt: str | None) -> tuple["Tokenizer", int | None]:
        """Give the tokenizer with the model's own limit, and the positions for ``max_length``."""
        from transformers import AutoConfig, AutoTokenizer

        settings: dict[str, Any] = {}
        modules = folder / "modules.json"
        if modules.is_file():
            prompt = default_prompt(folder) if prompt is None else prompt
            folder = folder / json.loads(modules.read_text(encoding="utf-8"))[0]["path"]
            # Its older names are not used by the required versions of the libraries.
            saved = folder / "sentence_bert_config.json"
            settings = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else {}
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        read_as_letters(tokenizer)
        config: Any = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
        positions = getattr(config.get_text_config(), "max_position_embeddings", None)
        longest = settings.get("max_seq_length") or min(tokenizer.model_max_length, positions or NO_LIMIT)
        taken = 1 + max(1, getattr(config, "pad_token_id", None) or 0)  # by padding, in some models
        if positions and (max_length or longest) > positions - taken:  # or else no class is imported
            transformer = without_weights(config)
            longest, positions = min(longest, table_size(transformer) or longest), n_positions(transformer)
        longest = longest if longest < NO_LIMIT else USUAL_LIMIT
        return cls(tokenizer, int(longest), bool(settings.get("do_lower_case")), prompt or ""), positions

    def counts(self, texts: Sequence[str]) -> "Counts":
        """Count the tokens of each text, which is read once, behind the prompt and without truncation."""
        unknown, says = self.tokenizer.unk_token_id, readable_tokens(self.tokenizer).numpy()
        (without,) = self._ids([""])
        alone = np.array([len(without), without.count(unknown), says[without].sum()])  # of the prompt, special ones
        rows = [(len(ids), ids.count(unknown), says[ids[: self.longest]].sum()) for ids in self._ids(texts)]
        found = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return Counts(found[:, 0], *(found - alone).T)

    def _ids(self, texts: Sequence[str]) -> Iterator[list[int]]:
        for start in range(0, len(texts), WINDOW):
            window = [self.prompt + text for text in texts[start : start + WINDOW]]
            yield from encode(self.tokenizer, [text.lower() for text in window] if self.lower else window)


def _hub_folder(name: str, *, local: bool) -> Path:
    """Folder in the hub's cache, with all files but the weights."""
    from huggingface_hub import snapshot_download

    for in_cache in (True, False):
        if not in_cache and (local or not hub_is_reachable()):
            break
        for candidate in hub_names(name):
            with suppress(OSError, ValueError):
                return Path(
                    snapshot_download(candidate, local_files_only=in_cache, allow_patterns=list(_WITHOUT_WEIGHTS))
                )
    raise not_found(name)
