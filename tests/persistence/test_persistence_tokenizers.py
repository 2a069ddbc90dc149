"""Saved models whose tokenizer means harm: it cannot end the process, hang it or fill its memory.

Whoever prepares a folder can write fitting hashes, so every attack here has them.
"""

import base64
import io
import json
import struct

import pytest
from persistence_helpers import add_file, part

from skellipsoid import load
from skellipsoid.cli import main

TOKENIZER = "0-enc/text_model/tokenizer.json"


def change_rules(folder, change):
    """Replace rules of the tokenizer: a mapping of new ones, or a function."""
    rules = json.loads(part(folder, TOKENIZER).read_bytes())
    if callable(change):
        change(rules)
    else:
        rules |= change
    add_file(folder, TOKENIZER, json.dumps(rules).encode())


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def sequence(*steps):
    return {"normalizer": {"type": "Sequence", "normalizers": list(steps)}}


def split(pattern):
    return {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}}


def table_of_replacements(*units, texts="\0"):
    """A table as Precompiled reads it: a trie of 256 units, of which these are set, and the texts."""
    trie = [0] * 256
    for place, unit in units:
        trie[place] = unit
    content = struct.pack("<257I", 4 * len(trie), *trie) + texts.encode()
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}


def test_a_tokenizer_with_more_tokens_than_the_transformer_is_refused(saved):
    change_rules(saved, lambda rules: rules["model"]["vocab"].update(parcel=len(rules["model"]["vocab"])))
    with pytest.raises(ValueError, match=r"its tokenizer cannot be used \(it has \d+ tokens, but the transformer \d"):
        load(saved)


def add_tokens(rules):
    """Many special tokens of one number."""
    rules["added_tokens"] += [{**rules["added_tokens"][0], "content": f"{i:x<8}"} for i in range(20_000)]


LONGER = "its normalizer could make a text {} times as long"
#: Each of these took gigabytes, seconds or minutes, or ended the process, in load or in predict.
BOMBS = {
    "a table too short": ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "8P///2FiY2Q="}}, ""),
    "much in front of a text": ({"normalizer": {"type": "Prepend", "prepend": "x" * 10**6}}, ""),
    "pieces of no length": ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, ""),
    "tokens beyond the transformer": (
        {"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 999], "cls": ["[CLS]", 2]}},
        "",
    ),
    "five rules that multiply": (
        sequence(*(replace(old, new * 100) for old, new in zip("owxyz", "wxyzq", strict=True))),
        f"{LONGER.format(10**10)}; at most 500 is allowed",
    ),
    "much between all letters": (sequence(*[replace(" *", "zzzzzzz", "Regex")] * 3), LONGER.format(512)),
    "bytes that multiply": (sequence(*[{"type": "ByteLevel"}] * 10), LONGER.format(2**20)),
    "a long replacement": ({"normalizer": table_of_replacements(texts="a" * 1000 + "\0")}, LONGER.format(1000)),
    "many rules": (sequence(*[{"type": "Strip", "strip_left": True, "strip_right": True}] * 16), "normalizer has 17"),
    "many tokens": (add_tokens, "it adds 20005 tokens; at most 16384 are allowed"),
    "a pattern in a pattern": (split("(a+)+$"), r"its pattern '\(a\+\)\+\$' is none of the usual form"),
    "long words": (
        lambda rules: rules["model"].update(max_input_chars_per_word=10**9),
        "it looks for parts of words of more than 1000 letters",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), BOMBS.values(), ids=BOMBS)
def test_a_tokenizer_that_would_fail_fill_the_memory_or_hang_is_refused(saved, capfd, change, sentence):
    change_rules(saved, change)
    with pytest.raises(ValueError, match=f"because its tokenizer cannot be used .*{sentence}"):
        load(saved)
    assert main(["predict", "--model", str(saved)]) == 2
    assert capfd.readouterr().out == ""


def test_a_text_that_grows_too_much_is_refused(saved, capsys, monkeypatch):
    # The letter U+FDFA becomes 18, five of which become 20 each.
    change_rules(saved, sequence(replace("q", "\ufdfa"), {"type": "NFKD"}, replace("\u0644", "z" * 20)))
    loaded = load(saved)
    assert len(loaded.predict(["queen", "wake me at six"])) == 2
    sentence = "tokenizer makes 22601 letters of a text of 201, more than 20 times as many; use another embedding model"
    with pytest.raises(ValueError, match=sentence):
        loaded.predict(["wake me", "q" * 200 + " "])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"q" * 200 + b"\n")))
    assert main(["predict", "--model", str(saved)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_tokenizer_that_fails_over_a_text_is_one_sentence(saved, capfd, monkeypatch):
    """Its library ends with an error that is no Exception, which a server, for instance, would not survive."""
    change_rules(saved, {"normalizer": table_of_replacements((ord("q"), 1 << 20 | 1 << 8 | ord("q")))})
    loaded = load(saved)
    assert len(loaded.predict(["wake me at six"])) == 1
    with pytest.raises(ValueError, match=r"model's tokenizer cannot read a text .*; use another embedding model"):
        loaded.predict(["songs by queen"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"songs by queen\n")))
    assert main(["predict", "--model", str(saved)]) == 2
    assert "Traceback" not in capfd.readouterr().err
