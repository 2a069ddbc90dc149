"""An embedding model as plain data: a description for JSON, its weights as safetensors, its tokenizer as JSON.

Only the classes of transformers, tokenizers and sentence-transformers that are listed here are built, with the settings
that are listed here. No file, address or name of code in the data is used.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from skellipsoid_runtime._rule_limits import check_rules

from ..._torch.imports import without_collection
from ..._torch.progress import quiet_libraries
from ..._torch.threads import one_thread_each
from .embedding_model import EmbeddingModel
from .positions import NO_LIMIT, check_limit
from .probes import check_tokens
from .text_modules import (
    LayerMix,
    build_module,
    check_mapping,
    check_module,
    describe_module,
    is_never,
    is_plain,
)

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
#: Names of both files of a stored embedding model.
FILES = (WEIGHTS, TOKENIZER)
#: Settings that model classes read although their configuration does not declare them.
_UNDECLARED_SETTINGS = {
    *("attention_head_size", "conv_act", "conv_groups", "conv_kernel_size", "embedding_size", "head_dim", "is_causal"),
    *("norm_rel_ebd", "position_buckets", "share_att_key", "talking_head", "use_bidirectional_attention"),
}
#: Text models that consist of layers. Others may contain further models, which they look up by name.
CLASSES = frozenset(
    f"{name}Model"
    for name in (
        *("Albert", "Bert", "Camembert", "ConvBert", "Deberta", "DebertaV2", "DistilBert", "Electra", "Ernie"),
        *("EuroBert", "Gemma", "Gemma2", "Gemma3Text", "GPT2", "Llama", "Longformer", "Mistral", "ModernBert"),
        *("MPNet", "MT5Encoder", "NomicBert", "Qwen2", "Qwen3", "Roberta", "RoFormer", "T5Encoder", "XLMRoberta"),
        "XLMRobertaXL",
    )
)
#: Names of special tokens, and the settings of a tokenizer that change token ids and are not in its file.
_TOKENS = {f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")}
_TOKENIZER_SETTINGS = {*_TOKENS, "truncation_side", "split_special_tokens"}
#: Settings that are numbers of layers with weights.
_LAYERS = re.compile(r"n_layers?|num_\w*layers|num_hidden_groups|inner_group_num")
#: The largest number of a layer.
_MOST_LAYERS = 1000
#: The largest number of positions; some models compute a table of them.
_MOST_POSITIONS = 2**20
#: The largest window of attention: Longformer pads every text to a multiple of it. Usual is 512.
_LONGEST_WINDOW = 2048
#: Largest number of characters of a prompt, as in skellipsoid-runtime.
_LONGEST_PROMPT = 10_000
_USE_ANOTHER = f"use one of {', '.join(sorted(name.removesuffix('Model') for name in CLASSES))}"
_KEYS = {"class", "config", "tokenizer", "modules", "limit", "lowers"}
#: Optional settings: the prompt, the intermediate layers, and zeros for unreadable texts.
_PROMPT, _LAYER_MIX, _ZEROS = "prompt", "layers", "zeros"
_MIX_KEYS = ("numbers", "weight")


class StoredModel(NamedTuple):
    """An embedding model as plain data."""

    description: dict[str, Any]  # JSON
    files: dict[str, bytes]  # by the names of ``FILES``


def store(model: EmbeddingModel) -> StoredModel:
    """Convert an embedding model to plain data.

    Raises
    ------
    TypeError
        If a part of it cannot be saved without code: a tokenizer in Python, or a module that is not listed here.
    """
    transformer, tokenizer = model.transformer, model.tokenizer
    if type(transformer).__name__ not in CLASSES:
        raise TypeError(
            f"The embedding model is a {type(transformer).__name__}, which cannot be saved; {_USE_ANOTHER}."
        )
    if not tokenizer.is_fast:
        raise TypeError(
            f"The embedding model has a {type(tokenizer).__name__}, which runs Python code of its own and cannot be "
            "saved; use an embedding model whose folder holds a tokenizer.json."
        )
    declared = _declared_settings(type(transformer.config))
    config = {name: value for name, value in transformer.config.to_dict().items() if name in declared}
    for name, value in config.items():
        if not is_plain(value):
            raise TypeError(
                f"The embedding model's setting {name!r} is {value!r}, which cannot be saved; use another embedding "
                "model."
            )
    kept: dict[str, Any] = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if name in _TOKENS}
    kept["truncation_side"] = tokenizer.truncation_side
    kept["split_special_tokens"] = bool(getattr(tokenizer, "split_special_tokens", False))
    description = {
        "class": type(transformer).__name__,
        "config": config,
        "tokenizer": kept,
        "modules": _described(model.after),
        "limit": model.limit,
        "lowers": model.lowers,
        **({_PROMPT: model.prompt} if model.prompt else {}),
        **({_LAYER_MIX: {"numbers": model.mix.layers, "weight": model.mix.weight}} if model.mix else {}),
        **({_ZEROS: True} if model.zeros else {}),
    }
    # JSON turns tuples into lists, so the stored form equals the one that is read.
    description = json.loads(json.dumps(description))
    stored: dict[tuple[int, torch.Size], tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict().items():  # a tied weight is stored once
        stored.setdefault((tensor.data_ptr(), tensor.shape), (name, tensor))
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in stored.values()}
    # The rust tokenizer alone, without the truncation and padding of its last call.
    rules = json.loads(tokenizer.backend_tokenizer.to_str()) | {"truncation": None, "padding": None}
    try:
        check_rules(rules)
    except ValueError as error:
        raise TypeError(
            f"The embedding model's tokenizer cannot be saved, because {error}; use another embedding model."
        ) from error
    return StoredModel(description, {WEIGHTS: safetensors.torch.save(weights), TOKENIZER: json.dumps(rules).encode()})


@without_collection()
def restore(stored: StoredModel) -> EmbeddingModel:
    """Build an embedding model from plain data, in evaluation mode and on the CPU. It does not run: see ``probes``.

    Raises
    ------
    ValueError
        If the data hold anything that ``store`` does not write, or if they do not fit together.
    """
    description = check_description(stored.description)
    # One thread, because a process that is forked afterwards would wait for torch's threads for ever.
    with quiet_libraries(), one_thread_each():
        tokenizer = restore_tokenizer(stored)
        with _explained("its weights"):
            weights = safetensors.torch.load(stored.files[WEIGHTS])
        for name, tensor in weights.items():
            if not name.startswith(("transformer.", "after.", "mix.")) or tensor.dtype != torch.float32:
                raise ValueError(
                    f"the embedding model has {name[:80]!r} of {tensor.dtype} among its weights, which save never "
                    "writes"
                )
        transformer = _transformer(description, _below("transformer.", weights))
        with _explained("its modules"):
            with torch.device("meta"):  # else layers draw random weights, beside a training that does, too
                after = [build_module(**module) for module in description["modules"]]
            nn.ModuleList(after).to_empty(device="cpu").load_state_dict(_below("after.", weights))
        chosen = {"lowers": description["lowers"], "prompt": description.get(_PROMPT, "")}
        chosen |= {"zeros": description.get(_ZEROS, False)}
        model = EmbeddingModel(transformer, tokenizer, after, description["limit"], **chosen).eval()
        if _LAYER_MIX in description:
            with _explained("its layers"):
                numbers, weight = (description[_LAYER_MIX][name] for name in _MIX_KEYS)
                model.check_layers(numbers)
                model.mix = LayerMix(numbers, weight, model.width)
                model.mix.load_state_dict(_below("mix.", weights))
        check_limit(description["limit"], transformer)
        with _explained("its tokenizer"):
            check_tokens(model)
    model.is_untried = True
    return model


def restore_tokenizer(stored: StoredModel) -> Any:
    """Build the tokenizer alone."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    settings = check_description(stored.description)["tokenizer"]
    with _explained("its tokenizer"):
        rules = json.loads(stored.files[TOKENIZER])
        check_rules(rules)
        build: Any = PreTrainedTokenizerFast
        # Written again, because of a repeated key the library would read another value than was checked.
        return build(
            tokenizer_object=Tokenizer.from_str(json.dumps(rules)), clean_up_tokenization_spaces=False, **settings
        )


def check_description(description: Any) -> dict[str, Any]:
    """Check a description and return it, as far as possible without the libraries.

    Raises
    ------
    ValueError
        Otherwise; the message names what is not allowed.
    """
    found = check_mapping(description, "its description", {*_KEYS, _PROMPT, _LAYER_MIX, _ZEROS})
    if missing := sorted(_KEYS - found.keys()):
        raise ValueError(f"the embedding model has no {missing[0]!r}")
    if not (isinstance(found["class"], str) and found["class"] in CLASSES):
        raise ValueError(f"the embedding model asks for the class {str(found['class'])[:80]!r}; {_USE_ANOTHER}")
    for name, value in check_mapping(found["config"], "its configuration").items():
        if is_never(name):
            raise ValueError(
                f"the embedding model's configuration has {name!r}, which save never writes; do not trust this model"
            )
        if not is_plain(value):
            raise ValueError(
                f"the embedding model's configuration has {str(value)[:80]!r} as {name!r}, which is no plain setting"
            )
    for name, value in check_mapping(found["tokenizer"], "its tokenizer", _TOKENIZER_SETTINGS).items():
        if type(value) is not (bool if name == "split_special_tokens" else str):
            raise ValueError(f"the embedding model's tokenizer has {str(value)[:80]!r} as {name!r}, which is no string")
    if not isinstance(found["modules"], list):
        raise ValueError("the embedding model's modules are no list")
    for module in found["modules"]:
        check_module(module)
    limit, lowers = found["limit"], found["lowers"]
    if not (limit is None or (type(limit) is int and 1 <= limit < NO_LIMIT)) or type(lowers) is not bool:
        raise ValueError(
            f"the embedding model's limit is {limit!r} and its lower case {lowers!r}; they must be a number and a "
            "Boolean"
        )
    prompt = found.get(_PROMPT, "")
    if type(prompt) is not str or prompt.encode("utf-8", "ignore").decode() != prompt:
        raise ValueError(f"the embedding model's prompt is {str(prompt)[:80]!r}, which is no valid text")
    if len(prompt) > _LONGEST_PROMPT:
        raise ValueError(
            f"the embedding model's prompt has {len(prompt)} letters; at most {_LONGEST_PROMPT} are allowed"
        )
    if type(found.get(_ZEROS, True)) is not bool:
        raise ValueError(f"the embedding model has {str(found[_ZEROS])[:80]!r} as its zeros, which is no Boolean")
    if _LAYER_MIX in found:
        _check_layers(check_mapping(found[_LAYER_MIX], "the layers of the embedding model", {*_MIX_KEYS}))
    return found


def _check_layers(found: dict[str, Any]) -> None:
    """Raise an error if layers are described otherwise than ``store`` does."""
    numbers, weight = found.get("numbers"), found.get("weight")
    is_list = isinstance(numbers, list) and 1 <= len(numbers) <= _MOST_LAYERS
    if not is_list or not all(type(each) is int and 0 <= each <= _MOST_LAYERS for each in numbers or ()):
        raise ValueError(f"the embedding model reads the layers {str(numbers)[:80]}, which are no numbers of layers")
    if not isinstance(weight, float) or not 0 < weight <= 1:
        raise ValueError(f"the embedding model weighs layers by {str(weight)[:80]}, which is no number between 0 and 1")


def _declared_settings(kind: Any) -> set[str]:
    """Names of the settings of a configuration, except those that choose code."""
    return {name for name in (*kind().to_dict(), *_UNDECLARED_SETTINGS) if not is_never(name)}


def _transformer(description: Mapping[str, Any], weights: dict[str, Tensor]) -> Any:
    """Build the transformer with these weights; none may be missing."""
    import transformers

    kind: Any = getattr(transformers, description["class"], None)
    if kind is None:
        raise ValueError(f"this version of transformers has no {description['class']}")
    settings = dict(description["config"])
    if (found := settings.pop("model_type", None)) != kind.config_class.model_type:
        raise ValueError(f"the embedding model is a {description['class']}, but its type is {found!r}")
    if unknown := sorted(settings.keys() - _declared_settings(kind.config_class)):
        raise ValueError(
            f"the embedding model's configuration has {unknown[0]!r}, which a {description['class']} does not have"
        )
    with _explained("its configuration"):
        config = kind.config_class(**settings)
    _check_sizes(kind, config, weights)
    with _explained("its transformer"):
        # Neither a file nor an address: the weights are given.
        model, report = kind.from_pretrained(
            None,
            config=config,
            state_dict=weights,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    wrong = sorted({*report["missing_keys"], *report["unexpected_keys"], *map(str, report["mismatched_keys"])})
    if wrong:
        raise ValueError(f"the embedding model's weights do not fit its configuration ({wrong[0]})")
    return model


def _check_sizes(kind: Any, config: Any, weights: Mapping[str, Tensor]) -> None:
    """Raise an error if a configuration asks for other layers than there are weights, before memory is taken."""
    for name, value in config.to_dict().items():
        if _LAYERS.fullmatch(name) and isinstance(value, int) and value > len(weights):
            raise ValueError(f"the embedding model has {value} layers ({name}), but {len(weights)} weights")
    positions = getattr(config, "max_position_embeddings", None) or 0
    if not isinstance(positions, int) or positions > _MOST_POSITIONS:
        raise ValueError(
            f"the embedding model has {str(positions)[:80]} positions; at most {_MOST_POSITIONS} are allowed"
        )
    windows = getattr(config, "attention_window", None)
    if max([windows] if isinstance(windows, int) else windows or [0]) > _LONGEST_WINDOW:
        raise ValueError(
            f"the embedding model's attention_window is {str(windows)[:80]}; at most {_LONGEST_WINDOW} is allowed"
        )
    with _explained("its configuration"), torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in kind(config).state_dict().items()}
    for name, tensor in weights.items():
        if shapes.get(name) != tensor.shape or not np.isfinite(tensor.numpy()).all():
            raise ValueError(f"the embedding model's weights do not fit its configuration ({name})")


def _below(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn any error of the libraries for altered data into one sentence about the model."""
    try:
        yield
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the tokenizer's library is not an Exception
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"the embedding model cannot be built, because {what} cannot be used ({reason})") from error


def _described(modules: Iterable[nn.Module]) -> list[dict[str, Any]]:
    try:
        return [describe_module(module) for module in modules]
    except ValueError as error:
        raise TypeError(
            f"The embedding model cannot be saved: {error}; use pooling='mean', or another embedding model."
        ) from error
