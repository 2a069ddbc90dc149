"""The check of training texts: each kind of finding when it is there, none where it is not, in any order of rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch

from skellipsoid import SupConTextEncoder, check_training_texts
from skellipsoid.datasets import load_assistant_intents

KINDS = ["header", "open_label", "similar_labels", "conflicting_labels", "few_texts"]
KINDS += ["empty_texts", "long_texts", "exact_duplicates", "near_duplicates"]


@pytest.fixture(scope="module")
def check(tiny_model):
    """Check by the tiny model, which reads 64 tokens: ``check(texts, y, **options)``.

    It knows few words. What a model cannot read is left out here, and has tests with a real one.
    """

    def with_model(texts, y, **options):
        found = check_training_texts(texts, y, **{"encoder": SupConTextEncoder(tiny_model), **options})
        rest = ~np.isin(found.kind, ["unread_texts", "language"])
        return type(found)(**{name: column[rest] for name, column in found.items()})

    return with_model


def only(findings, kind):
    """The one finding that there is, of this kind."""
    assert findings.kind.tolist() == [kind]
    return Bunch(**{name: values[0] for name, values in findings.items()})


def of_kind(findings, kind):
    found = findings.kind == kind
    return [*zip(findings.label[found], findings.rows[found], strict=True)]


def test_the_shipped_corpus_is_clean(check):
    train = load_assistant_intents(subset="train")
    assert check(train.data, train.target).kind.tolist() == []


# Each kind


@pytest.mark.parametrize(("text", "label"), [("text", "label"), ("Utterance", " Intent")])
def test_a_header_is_found_and_is_no_class(check, texts, labels, text, label):
    found = only(check([text, *texts], [label, *labels]), "header")
    assert (found.rows, found.label) == ((0,), label)
    assert found.message == f"Row 0 is {text!r} with the label {label!r}, which look like names of columns; drop it."


@pytest.mark.parametrize(
    ("n_before", "text", "label"),
    [(1, "text", "label"), (0, "text", "alarm"), (0, "wake me at six", "label")],
    ids=["not the first row", "a class", "a text"],
)
def test_other_rows_are_no_header(check, texts, labels, n_before, text, label):
    rows, y = [*texts[:n_before], text, *texts[n_before:]], [*labels[:n_before], label, *labels[n_before:]]
    assert "header" not in check(rows, y).kind


def test_a_misspelt_open_label_is_found(check, texts, labels, open_texts):
    y = [*labels, *["oos"] * 6]
    assert check([*texts, *open_texts], y, open_label="oos").kind.tolist() == []
    for name in ("OOS", "oos ", "Oos"):
        found = only(check([*texts, *open_texts], y, open_label=name), "open_label")
        assert (found.rows, found.label) == (tuple(range(32, 38)), "oos")
        assert found.message == (
            f"The open label {name!r} occurs nowhere, but 'oos' does, in rows 32, 33, 34, 35, 36, 37, and is trained "
            "as a class; pass 'oos' as the open label if these texts are of no class."
        )


@pytest.mark.parametrize("other", ["light", "-1"])
def test_one_text_under_two_labels_is_found(check, texts, labels, other):
    findings = check([*texts, " LIGHTS  off", "Rain"], [*labels, "balance", other])
    wanted = {(("balance", "light"), (2, 32)), (tuple(sorted(["weather", other])), (3, 33))}
    assert {*of_kind(findings, "conflicting_labels")} == wanted
    assert set(findings.kind) == {"conflicting_labels"}
    said = "Equal texts have different labels ('balance' and 'light') in rows (2, 32); keep one"
    assert said in "".join(findings.message)


@pytest.mark.parametrize("blank", ["\t\n", "\u200b"])
def test_empty_and_blank_texts_are_found_and_are_no_copies(check, texts, labels, blank):
    found = only(check([*texts, "", blank, blank], [*labels, "alarm", "light", "light"]), "empty_texts")
    assert (found.rows, found.label) == ((32, 33, 34), None)
    assert found.message == "The texts in rows 32, 33, 34 are empty or blank; fill them in, or drop these rows."


def test_texts_beyond_the_limit_are_found(check, texts, labels):
    long = ["snow " * 62, "snow " * 63, "snowy " * 99]  # beside two special tokens 62 fit
    findings = check([*texts, *long], [*labels, "weather", "weather", "light"])
    assert of_kind(findings, "long_texts") == [(None, (33, 34))]
    assert findings.message[findings.kind.tolist().index("long_texts")] == (
        "The texts in rows 33, 34 have more tokens (up to 101) than the 64 that the embedding model reads, and their "
        "ends are cut off; shorten them, or raise max_length if the model can read more."
    )


def test_equal_texts_are_found_by_class(check, texts, labels):
    findings = check([*texts, " ALARM ", "Alarm", "rain", texts[0]], [*labels, "alarm", "alarm", "weather", "alarm"])
    assert of_kind(findings, "exact_duplicates") == [("alarm", (0, 8, 32, 33, 35)), ("weather", (3, 34))]
    assert findings.message[0] == (
        "The class 'alarm' has equal texts in rows (0, 35), (8, 32, 33); by default training counts each of these "
        "groups as one text: drop the copies, or pass duplicates='each' to count all."
    )
    assert set(findings.kind) == {"exact_duplicates"}


@pytest.mark.parametrize("vary", ["{} please", "{}!!", "hey {}", "typo"])
def test_near_duplicates_are_found(check, vary):
    train = load_assistant_intents(subset="train")
    varied = train.data[::10]
    copies = [text[:3] + text[4:] if vary == "typo" else vary.format(text) for text in varied]
    findings = check([*train.data, *copies], [*train.target, *train.target[::10]])
    assert set(findings.kind) == {"near_duplicates"}
    found = {row for _, rows in of_kind(findings, "near_duplicates") for row in rows}
    assert len(found & {*range(672, 740)}) > 0.9 * len(varied)
    assert len(found - {*range(672, 740)} - {*range(0, 672, 10)}) < 0.15 * len(varied)


# Data of all kinds


def written(n_classes, n_texts, n_words, seed=0):
    """Texts of random words: of few words of each class, as variants are, or of many."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 6)) for _ in range(n_classes * n_words)]
    y = np.repeat(range(n_classes), n_texts)
    rows = [" ".join(rng.choice(words[c * n_words : (c + 1) * n_words], 6, replace=False)) for c in y]
    return rows, [f"class {c}" for c in y]


@pytest.mark.parametrize("n_texts", [15, 80])
def test_texts_that_are_variants_of_one_another_are_found(check, n_texts):
    """However many texts there are: more of them have nearer neighbours."""
    texts, y = written(6, n_texts, 10)
    (finding,) = [row for row in zip(*check(texts, y).values(), strict=True) if row[0] == "variants"]
    _, rows, label, message = finding
    assert label is None
    assert len(rows) >= 0.6 * len(texts)
    assert message.startswith(f"{100 * len(rows) / len(texts):.0f} % of the texts are variants of another text")
    many, y = written(6, n_texts, 300)
    assert "variants" not in check(many, y).kind
    assert "variants" not in check(texts[:45], ["class 0"] * 45).kind  # too few to tell


def test_all_kinds_come_in_the_documented_order_and_a_frame_shows_them(check, texts, labels):
    more = {"Dim the lights!": "light", "dim the LIGHTS": "light", "rain": "light", "": "alarm"}
    more |= {"snowy " * 99: "weather", "who wrote hamlet": "other", "play jazz": "music", "play songs": "Music"}
    findings = check(["text", *texts, *more], ["label", *labels, *more.values()])
    assert list(dict.fromkeys(findings.kind)) == KINDS
    table = pd.DataFrame(findings)
    assert table.columns.tolist() == ["kind", "rows", "label", "message"]
    assert table["kind"].tolist() == findings.kind.tolist()
    for kind, rows, message in zip(table["kind"], table["rows"], table["message"], strict=True):
        assert kind in check_training_texts.__doc__
        assert list(rows) == sorted(set(rows))
        assert all(type(row) is int for row in rows)
        assert message.endswith(".")
        assert "\n" not in message
    assert {values.dtype for values in findings.values()} == {np.dtype(object)}


def test_long_lists_of_rows_and_labels_are_cut_to_ten(check, texts, labels):
    findings = check([*texts, *[""] * 12, *["rain"] * 15], [*labels, *["alarm"] * 12, *["weather"] * 15])
    assert findings.kind.tolist() == ["empty_texts", "exact_duplicates"]
    assert "rows 32, 33, 34, 35, 36, 37, 38, 39, 40, 41 and 2 more are empty" in findings.message[0]
    assert "rows (3, 44, 45, 46, 47, 48, 49, 50, 51, 52, …) and 6 more; by" in findings.message[1]
    assert findings.rows[0] == tuple(range(32, 44))
    pairs = check([*texts, *texts[:24]], [*labels, *labels[:24]])
    assert "rows (0, 32), (4, 36), (8, 40), (12, 44), (16, 48) and 2 more; by" in pairs.message[0]
    many = check([*texts, *["hello"] * 12], [*labels, *(f"label {i:02}" for i in range(12))])
    conflict = many.message[many.kind.tolist().index("conflicting_labels")]
    assert "'label 09' and 2 more) in rows (32, 33, 34, 35, 36, 37, 38, 39, 40, 41, …) and 2 more; keep" in conflict


# What is refused


@pytest.mark.parametrize(
    ("bad_texts", "bad_y"),
    [
        ("wake me", [0, 0]),
        (["wake me", None], [0, 0]),
        (["wake me", "alarm"], ["alarm", None]),
    ],
)
def test_texts_and_labels_are_refused_as_the_encoder_refuses_them(tiny_model, bad_texts, bad_y):
    encoder = SupConTextEncoder(tiny_model)
    with pytest.raises(ValueError) as of_check:  # noqa: PT011 - the sentence is compared below
        check_training_texts(bad_texts, bad_y, encoder=encoder)
    with pytest.raises(ValueError) as of_encoder:  # noqa: PT011
        encoder.fit(bad_texts, bad_y)
    assert str(of_check.value) == str(of_encoder.value)


def test_labels_that_join_others():
    labels = ["a", "b", "c", "a|b", "a, b", "['a', 'b']", "b; c", "a|x", "a b", "c/a"]
    labels += ["['v', 'w']", "q|r", "r|s", "s|q", "billing | refund", "billing | invoice"]
    found = check_training_texts([f"text {i} of a few" for i in range(len(labels))], labels)
    assert found.label[found.kind == "joined_labels"].tolist() == [
        *("['a', 'b']", "['v', 'w']", "a, b", "a|b", "b; c"),
        *("q|r", "r|s", "s|q"),  # not a path whose first part comes again
    ]
    assert found.message[list(found.kind).index("joined_labels")] == (
        "The label \"['a', 'b']\" in row 5 joins 'a' and 'b', but is trained as a class of its own; write one label "
        "for each text, or leave these texts out."
    )


AROUND = {
    "<p>{}</p><br>": "hold HTML, such as '<p>'",
    "[{}](city) please": "hold marks of entities, such as '[",
    '[{}]{{"entity": "city"}} please': "hold marks of entities, such as '[",
    "[2026-01-03T10:22:31Z] user: {}": "begin with a time, such as '[2026-01-03T10:22",
    "hello dear team, {}": "begin with the same words, 'hello dear team,'",
    "{}\n--\nKind regards, Jane": "end with the same words, '-- Kind regards, Jane'",
    "{}\n\nOn 3 Mar 2025, Jane wrote:\n> yes\n": "quote an earlier message, such as 'On 3 Mar 2025, Jane wrote:'",
}


@pytest.mark.parametrize("around", AROUND)
def test_what_stands_around_the_words_of_users_is_found(check, texts, labels, around):
    found = check([around.format(text) for text in texts], labels)
    found = Bunch(**{name: values[found.kind == "markup"][0] for name, values in found.items()})
    assert (found.rows, found.label) == (tuple(range(32)), None)
    assert found.message.startswith(f"32 of 32 texts {AROUND[around]}")
    assert "unlike messages of users; " in found.message
    few = [around.format(text) if i < 2 else text for i, text in enumerate(texts)]
    assert "markup" not in check(few, labels).kind


def test_a_disclaimer_of_a_few_texts_is_found_as_a_whole(check, texts, labels):
    end = "This message is confidential and was sent to you alone by ACME"
    some = [f"{text} {end}" if i % 5 == 0 else text for i, text in enumerate(texts)]
    found = only(check(some, labels), "markup")
    assert found.rows == tuple(range(0, 32, 5))
    assert found.message.startswith(f"7 of 32 texts end with the same words, '{end[:60]}")


@pytest.mark.parametrize("holder", [LogisticRegression(), Pipeline([("clf", LogisticRegression())]), "model"])
def test_what_holds_no_encoder_is_refused(texts, labels, holder):
    with pytest.raises(TypeError, match="without a SupConTextEncoder; pass a SupConTextEncoder or a Pipeline that"):
        check_training_texts(texts, labels, encoder=holder)


def test_a_string_open_label_beside_numeric_labels_is_refused(check, texts, labels):
    with pytest.raises(ValueError, match="The open label 'oos' is a string, but the labels are numbers"):
        check(texts, np.unique(labels, return_inverse=True)[1], open_label="oos")
