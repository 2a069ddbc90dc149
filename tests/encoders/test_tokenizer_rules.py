"""Rules of tokenizers: those of usual models are allowed, and what takes long is not."""

import json

import pytest
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from skellipsoid._encoders.torch.rule_limits import _shortest_match, check_rules
from skellipsoid._encoders.torch.tokenizer_rules import encode

#: Tokenizers of transformers for the models that can be saved, and some that are built like them.
USUAL = [
    *("Albert", "Barthez", "Bert", "BigBird", "Camembert", "CodeLlama", "Cohere", "Deberta", "DebertaV2", "DistilBert"),
    *("Electra", "Gemma", "GPT2", "Llama", "MBart50", "MPNet", "Nllb", "Qwen2", "RemBert", "Roberta", "T5"),
    "XLMRoberta",
]
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
#: Regular expressions in the tokenizer.json of released models, and the letters that each surely needs.
PATTERNS = {
    "GPT-2": (rf"{CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+", 1),
    "GPT-4": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|" + BLANKS,
        1,
    ),
    "Llama 3": (
        rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{BLANKS}",
        0,  # letters of groups are not counted
    ),
    "GPT-4o": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:{CONTRACTIONS})?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
        rf"(?i:{CONTRACTIONS})?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}",
        1,
    ),
    "DeepSeek": (
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
        r"""[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + BLANKS,
        1,
    ),
    "ideograms": (r"[一-龥぀-ゟ゠-ヿ]+", 1),
    "three digits": (r"[0-9][0-9][0-9]", 3),
    "T5": (r" {2,}", 2),
    "DebertaV2": (r"\s{2,}|[\n\r\t]", 1),
    "the ends": (r"\A +| +\z", 1),
    "the start": (r"^▁+$", 1),
    "nothing": (r"", 0),
    "or nothing": (r"a|", 0),
    "perhaps": (r"a?b*", 0),
}
SLOW = [
    *("(a+)+$", "(a|aa)+$", "(a*)*b", "a*a*b", ".*.*$", "(?:a+)?b", "a{1,3}a{1,3}b", "(a{1,30}){1,30}", "a{9}{9}{9}"),
    *("a?" * 30 + "a" * 30, "(a|a)" * 20 + "b", "(a|b)(a|b)c", f"({'a|' * 50}a)", "a{1,1000}", "a++++", "a**"),
    *(r"(a)\1", r"\g<0>", "(?<=a+)b", "(?~a)", r"\X*", "(?<n>a)", "(?i)a", "[[a]", "(", "a)", "[", "x" * 501, None),
]


@pytest.mark.parametrize("name", USUAL)
def test_the_rules_of_usual_tokenizers_are_allowed(name):
    import transformers

    rules = json.loads(getattr(transformers, f"{name}Tokenizer")().backend_tokenizer.to_str())
    check_rules(rules | {"truncation": None, "padding": None})


def test_the_rules_of_the_default_model_are_allowed(minilm):
    from skellipsoid._encoders.torch.tokens import Tokenizer

    tokenizer = Tokenizer.load(minilm).tokenizer
    check_rules(json.loads(tokenizer.backend_tokenizer.to_str()) | {"truncation": None, "padding": None})
    texts = ["wake me at six", "", "déjà 漢字 \ufdfa"]
    assert encode(tokenizer, texts) == tokenizer(texts)["input_ids"]


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
