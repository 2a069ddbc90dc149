"""Groups of open samples: hidden classes are found, noise is left alone, order and copies do not matter."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, SupConTextEncoder, discover_classes
from skellipsoid._traffic.discovery import groups as _groups
from skellipsoid._traffic.discovery.likelihood import evidence
from skellipsoid._traffic.discovery.words import telling_words, words_of
from skellipsoid.baselines import MahalanobisClassifier

N_KNOWN, N_HIDDEN, N_FEATURES = 12, 6, 16


def draw(rng, centres, labels):
    return centres[labels] + rng.normal(size=(len(labels), centres.shape[1]))


@pytest.fixture(scope="module")
def traffic():
    """A fitted classifier, and traffic of known and hidden classes, of unlike sizes, with noise (−2) far apart."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 4, size=(N_KNOWN + N_HIDDEN, N_FEATURES))
    y = np.repeat(np.arange(N_KNOWN), 30)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(draw(rng, centres, y), y)
    sizes = [20] * N_KNOWN + [90, 60, 40, 30, 20, 12]
    y = np.repeat(np.arange(N_KNOWN + N_HIDDEN), sizes)
    X = np.concatenate([draw(rng, centres, y), rng.normal(0, 6, size=(8, N_FEATURES))])
    return clf, X, np.append(y, [-2] * 8)


@pytest.fixture(scope="module")
def found(traffic):
    return discover_classes(traffic[0], traffic[1])


def hidden_of(result, y):
    return result.is_open & (y >= N_KNOWN)


def test_groups_are_described(found):
    np.testing.assert_array_equal(found.sizes, np.bincount(found.labels[found.labels >= 0]))
    assert (np.diff(found.sizes) <= 0).all()
    assert ((found.coherence > 0.5) & (found.coherence < 1)).all()
    for group, rows in enumerate(found.representatives):
        assert len(rows) == 5
        assert (found.labels[rows] == group).all()
        assert (np.diff(found.scores[rows]) <= 0).all()
        assert found.scores[rows[0]] == found.scores[found.labels == group].max()
    assert found.names == [f"group {i + 1}" for i in range(N_HIDDEN)]
    n_grouped, n_open = (found.labels >= 0).sum(), found.is_open.sum()
    assert n_grouped < n_open
    assert repr(found) == f"<DiscoveredClasses: {n_grouped} of {n_open} open samples are in {N_HIDDEN} groups>"


def test_a_group_around_a_known_class_is_a_part_of_it(traffic):
    clf, _, _ = traffic
    rng = np.random.default_rng(1)
    towards = rng.normal(size=(40, N_FEATURES))
    around = clf.centroids_[3] + 7.5 * towards / np.linalg.norm(towards, axis=1, keepdims=True)
    far = rng.normal(0, 4, size=N_FEATURES) + rng.normal(size=(40, N_FEATURES))
    result = discover_classes(clf, np.concatenate([around, far]))
    part, new = result.labels[:40].max(), result.labels[40:].max()
    assert {part, new} == {0, 1}
    assert result.nearest_class[part] == 3
    assert result.is_part[part]
    assert not result.is_part[new]


def test_copies_count_once_for_groups_and_are_shown(traffic, found):
    clf, X, y = traffic
    noise = int(np.flatnonzero(y == -2)[0])
    copied = np.append(np.flatnonzero(found.labels == 1)[:7], np.repeat(noise, 20))
    result = discover_classes(clf, np.concatenate([X, X[copied]]))
    np.testing.assert_array_equal(result.labels[: len(X)], found.labels)
    np.testing.assert_array_equal(result.labels[len(X) :], found.labels[copied])
    np.testing.assert_array_equal(result.first_rows[len(X) :], copied)
    np.testing.assert_array_equal(result.distinct_sizes, found.distinct_sizes)
    assert (result.sizes - found.sizes).tolist() == [0, 7, 0, 0, 0, 0]
    np.testing.assert_allclose(result.coherence, found.coherence)


def test_many_rows_are_grouped_in_halves(traffic, monkeypatch):
    clf, X, y = traffic
    monkeypatch.setattr(_groups, "MOST_COMPARED", 60)
    result = discover_classes(clf, X)
    rows = hidden_of(result, y)
    assert adjusted_rand_score(y[rows], result.labels[rows]) > 0.95


def test_the_ratio_is_that_of_gaussian_densities():
    # Against densities of the joint normal distribution, without the limit of the evidence.
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(3)
    rows, between = rng.normal(size=(4, 1)) * 2, np.array([2.5])

    def joint(values):
        n = len(values)
        return multivariate_normal(np.zeros(n), np.eye(n) + between[0]).logpdf(values.ravel())

    def wanted(values):
        return joint(values) - sum(multivariate_normal(0, 1).logpdf(value) for value in values.ravel())

    sums = np.array([rows.sum(axis=0), rows[:3].sum(axis=0)])
    np.testing.assert_allclose(evidence(sums, np.array([4.0, 3.0]), between), [wanted(rows), wanted(rows[:3])])


def test_pipelines_and_trained_ellipsoids(traffic):
    _, X, y = traffic
    hidden = y >= N_KNOWN
    known = (y >= 0) & ~hidden
    pipe = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(random_state=0))
    for model in (pipe, EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=3), random_state=0)):
        result = discover_classes(model.fit(X[known], y[known]), X)
        rows = hidden_of(result, y)
        assert adjusted_rand_score(y[rows], result.labels[rows]) > 0.9


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("मेरा ऑर्डर कहाँ है", "ऑर्डर की स्थिति", "बिजली का बिल", "बिल कितना है"), ("ऑर्डर", "बिल")),
        (("cle\u0301 perdue", "ma cle\u0301", "carte volée", "une carte"), ("clé", "carte")),
        (("我的订单在哪里", "查询订单状态", "电费账单", "账单多少"), ("订单", "账单")),
        (("บัตรหาย", "ยกเลิกบัตร", "เงินเดือน", "โอนเงิน"), ("บัตร", "เงิน")),
    ],
)
def test_words_of_other_scripts_are_whole(texts, words):
    found = telling_words(list(texts), np.array([0, 0, 1, 1]), 3)
    assert [word in of_group for word, of_group in zip(words, found, strict=True)] == [True, True]


@given(st.text(max_size=40))
def test_no_word_begins_with_a_mark_or_loses_one(text):
    words = words_of(text)
    assert all(unicodedata.category(word[0])[0] == "L" for word in words)
    written = unicodedata.normalize("NFC", text).lower()
    for word in words:
        ends = [match.end() for match in re.finditer(re.escape(word), written)]
        assert any(unicodedata.category(letter)[0] != "M" for end in ends for letter in [written[end : end + 1] or " "])


def test_texts_give_names_and_words_and_count_once(traffic, found):
    clf, X, y = traffic
    texts = np.array([f"word{'abcdefghijklmnopqrstu'[label]} number {i}" for i, label in enumerate(y)], dtype=object)
    texts[np.flatnonzero(found.labels == 0)[:3]] = ["Same  text", "same text", "SAME TEXT"]
    result = discover_classes(clf, X, texts=texts)
    assert result.distinct_sizes[0] == result.sizes[0] - 2
    assert result.n_groups == N_HIDDEN
    for group in range(N_HIDDEN):
        of_group = {text.split()[0] for text in texts[result.labels == group] if text.startswith("word")}
        assert result.words[group][0] in of_group
    assert len(set(result.names)) == N_HIDDEN


def test_text_pipeline(tiny_model, texts, labels, open_texts, tmp_path):
    clf = EllipsoidOpenSetClassifier(random_state=0)
    pipe = make_pipeline(SupConTextEncoder(tiny_model, finetune="none", random_state=0), clf).fit(texts, labels)
    result = discover_classes(pipe, [*texts, *open_texts], min_size=2)
    assert result.texts.tolist() == [*texts, *open_texts]
    assert len(result.names) == result.n_groups
    result.to_tsv(tmp_path / "groups.tsv")
    with pytest.raises(ValueError, match="X is empty"):
        discover_classes(pipe, [])
    with config_context(transform_output="pandas"):  # names of features: every warning is an error here
        named = clone(pipe).fit(texts, labels)
        np.testing.assert_array_equal(discover_classes(named, [*texts, *open_texts], min_size=2).labels, result.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a", "b"]}, "texts has 2; pass one text for each row"),
        ({"texts": [1] * 3}, "every text must be a str"),
        ({"min_size": 1}, "min_size=1 is not possible; use a whole number from 2"),
        ({"n_representatives": 0}, "n_representatives=0 is not possible"),
    ],
)
def test_bad_input(traffic, options, message):
    with pytest.raises(ValueError, match=message):
        discover_classes(*traffic[:2], **options)


def test_words_that_tell_nothing_are_none_and_those_of_known_classes_count_less():
    texts = ["how to restart the router", "is there a way to restart it", "restart my alarm please"]
    texts += ["what is the", "of a"]
    words = telling_words(texts, np.array([0, 0, 1, 1, 2]), 8, n_groups=1)
    assert words == [["router"]] or words == [["restart", "router"]]
    assert telling_words(["is what the", "how is it"], np.array([0, 0]), 3) == [[]]
    known = ["restart the modem"] * 5 + ["router is slow", "router is loud"]
    (words,) = telling_words(known, np.array([1, 1, 1, 1, 1, 0, 0]), 1, n_groups=1)
    assert words == ["router"]


def test_estimators_that_cannot_discover(traffic):
    _, X, y = traffic
    with pytest.raises(NotFittedError):
        discover_classes(EllipsoidOpenSetClassifier(), X)
    for other in (MahalanobisClassifier(), make_pipeline(StandardScaler(), LogisticRegression())):
        with pytest.raises(TypeError, match="needs the covariances of an EllipsoidOpenSetClassifier, but"):
            discover_classes(other.fit(X, y), X)
