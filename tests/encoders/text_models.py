"""Text models as the encoders hold them: of these tests the one place that knows where the package makes them."""

import json

import numpy as np

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid._encoders.torch.embedding_model import EmbeddingModel
from skellipsoid._encoders.torch.stored_model import restore, store
from skellipsoid._encoders.torch.tokens import Tokenizer

#: What of an encoder is trained.
MODES = ["head", "full", "none"]


def read(name, max_length=None):
    """A text model of a folder or a name, with ``tokenize``, ``embed`` and its limit ``longest``."""
    return TextBackbone.load(str(name), max_length)


def wrapped(transformer, tokenizer, after=(), limit=64, *, lowers=False, prompt=""):
    """A text model of a transformer of the library, its tokenizer and the modules after it."""
    return TextBackbone(EmbeddingModel(transformer, tokenizer, [*after], limit, lowers=lowers, prompt=prompt).eval())


def carried(backbone, config=None, **changes):
    """The model as a saved file gives it back; ``config`` and ``changes`` are what another hand has written there."""
    stored = store(backbone.model)
    description = json.loads(json.dumps(stored.description)) | changes
    description["config"] |= config or {}
    assert description != stored.description or not (config or changes)
    return TextBackbone(restore(stored._replace(description=description)))


def written(folder, model, after, **settings):
    """Write a text model and modules after it as sentence-transformers does: ``after(modules)``; gives the folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    whole = SentenceTransformer(modules=[modules.Transformer(model), *after(modules)], device="cpu", **settings)
    whole.save_pretrained(str(folder), create_model_card=False)
    return str(folder)


def counter(model, max_length=None, **options):
    """What counts the tokens of texts (``lengths``): of a folder, a name, or a model that is read already."""
    if isinstance(model, TextBackbone):
        return Tokenizer.of_backbone(model)
    return Tokenizer.load(str(model), max_length, **options)


def features(name, texts=("wake me at six", "rain"), **options):
    """Features of texts by the text model alone."""
    options = {"finetune": "none", "layers": "last", "normalize": False, **options}
    return SupConTextEncoder(str(name), **options).fit(list(texts)).transform(texts)


def embedded(backbone, texts):
    """Vectors of texts as an array."""
    found = backbone.embed(texts).numpy()
    assert np.isfinite(found).all()
    return found


def make_encoder(model, finetune="head", **parameters):
    """An encoder that learns quickly; every parameter can be changed."""
    # At the default temperature the noise of so small a model outweighs its classes.
    chosen = {"temperature": 0.3, "batch_size": 16, "max_iter": 8, "random_state": 0, "layers": "last"}
    chosen["learning_rate"] = 2e-2 if finetune == "head" else 3e-3
    return SupConTextEncoder(model, finetune=finetune, **chosen | parameters)


def unit(rows):
    """Rows of length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
