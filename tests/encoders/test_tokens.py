"""What the files of a text model say without its weights: how many tokens texts have, and by which rules."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
from text_models import counter, read, written
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split
from transformers import BertTokenizerFast

from skellipsoid._encoders.torch.backbone import export
from skellipsoid._encoders.torch.model_lookup import gives_mean
from skellipsoid_runtime._rule_limits import _shortest_match, check_rules

TEXTS = ["", "alarm", "wake me at six", "Wake Me At Six", "rain " * 40, "rain " * 400, "☔ déjà 漢字"]


@pytest.mark.parametrize(("lower", "n_tokens"), [(True, 4), (False, 3)])
def test_lower_case_is_a_setting_of_the_model(tiny_model, tmp_path, lower, n_tokens):
    folder = tmp_path / "model"
    folder.mkdir()
    export(read(tiny_model), folder, None, None, normalize=False)
    path = folder / "sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": lower}))
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "##s"]))
    # In capitals it is one unknown word.
    BertTokenizerFast(str(tmp_path / "vocab.txt"), do_lower_case=False).save_pretrained(folder)
    assert counter(str(folder)).counts(["RAINS"]).total.tolist() == [n_tokens]
    backbone = read(str(folder))
    assert len(backbone.tokenize(["RAINS"])[0]) == n_tokens
    again = pickle.loads(pickle.dumps(backbone))
    assert counter(again).counts(["RAINS"]).total.tolist() == [len(again.tokenize(["RAINS"])[0])] == [n_tokens]


@pytest.mark.parametrize(("name", "organisation"), [("some-team/tiny", "some-team"), ("tiny", "sentence-transformers")])
def test_the_hubs_cache_is_looked_into(tiny_model, tmp_path, monkeypatch, name, organisation):
    repository = tmp_path / f"models--{organisation}--tiny"
    commit = "0123456789012345678901234567890123456789"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    weights = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(tiny_model, repository / "snapshots" / commit, ignore=weights)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    tokenizer, backbone = counter(name), read(tiny_model)
    lengths = tokenizer.counts(TEXTS).total
    assert tokenizer.longest == backbone.longest
    assert [min(length, tokenizer.longest) for length in lengths] == [len(row) for row in backbone.tokenize(TEXTS)]
    # Two special tokens, and one for each of 400 known words: nothing is cut before it is counted.
    assert lengths[5] == 402


@pytest.mark.parametrize(
    ("listed", "settings", "expected"),
    [
        (lambda m: [m.Pooling(32)], {}, True),
        (lambda m: [m.Pooling(32)], {"prompts": {"ours": "set the lamp: "}, "default_prompt_name": "ours"}, True),
        (lambda m: [m.Pooling(32, include_prompt=False)], {"prompts": {"a": "b "}, "default_prompt_name": "a"}, False),
        *((lambda m, mode=mode: [m.Pooling(32, mode)], {}, False) for mode in ("cls", "mean_sqrt_len_tokens")),
        (lambda m: [m.Pooling(32), m.Dense(32, 32)], {}, False),
        (lambda m: [m.Pooling(32)], {"truncate_dim": 5}, False),
    ],
)
def test_files_say_whether_the_features_are_the_mean(tiny_model, tmp_path, listed, settings, expected):
    written(tmp_path, tiny_model, listed, **settings)
    assert gives_mean(tmp_path, None) == expected
    assert gives_mean(Path(tiny_model), None)
    chosen = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True, "word_embedding_dimension": 32}
    if expected and not settings:  # as older versions wrote it
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(chosen | {"pooling_mode_max_tokens": False}))
        assert gives_mean(tmp_path, None)
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(chosen))
        assert not gives_mean(tmp_path, None)


# Rules of tokenizers: those of usual models are allowed, and what takes long is not


#: Tokenizers of transformers for the models that can be saved, and some that are built like them.
USUAL = (
    "Albert Barthez Bert BigBird Camembert CodeLlama Cohere Deberta DebertaV2 DistilBert Electra Gemma GPT2 Llama "
    "MBart50 MPNet Nllb Qwen2 RemBert Roberta T5 XLMRoberta"
)


CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
#: Regular expressions in the tokenizer.json of released models, and the letters that each surely needs.
PATTERNS = {
    "Llama 3": (
        rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{BLANKS}",
        0,  # letters of groups are not counted
    ),
    "GPT-4o": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:{CONTRACTIONS})?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
        rf"(?i:{CONTRACTIONS})?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}",
        1,
    ),
    "T5": (r" {2,}", 2),
    "the ends": (r"\A +| +\z", 1),
    "the start": (r"^▁+$", 1),
    "nothing": (r"", 0),
}


SLOW = [
    *("(a+)+$", "(a|aa)+$", "a*a*b", "(?:a+)?b", "a{1,3}a{1,3}b", "(a{1,30}){1,30}", "a?" * 30 + "a" * 30),
    *("(a|a)" * 20 + "b", "a{1,1000}", r"(a)\1", "(?<=a+)b", "(?i)a", "(", "x" * 501, None),
]


@pytest.mark.parametrize("name", USUAL.split())
def test_the_rules_of_usual_tokenizers_are_allowed(name):
    import transformers

    rules = json.loads(getattr(transformers, f"{name}Tokenizer")().backend_tokenizer.to_str())
    check_rules(rules | {"truncation": None, "padding": None})


@pytest.mark.parametrize(("pattern", "shortest"), PATTERNS.values(), ids=PATTERNS)
def test_the_patterns_of_usual_models_are_allowed_and_lose_nothing(pattern, shortest):
    assert _shortest_match(pattern) == shortest
    divide = Split(Regex(pattern), "isolated").pre_tokenize_str
    for piece in ("a", " ", "ab1 ", "!", "A", "漢", "\n", " !\n"):
        text = piece * (3000 // len(piece))
        assert "".join(part for part, _ in divide(text)) == text


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_may_take_long_are_refused(pattern):
    with pytest.raises(ValueError, match=r"its pattern .* is none of the usual form, and could take too long"):
        _shortest_match(pattern)


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/modules.json").write_text("[{}]", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "other"):
        with pytest.raises(OSError, match="holds no tokenizer that can be loaded"):
            counter(str(folder))
