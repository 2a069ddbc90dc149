"""``SupConTextEncoder``: what its features are, what training does to them, and how a fitted encoder travels."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers
from sklearn.exceptions import NotFittedError
from text_models import MODES, make_encoder, unit

from skellipsoid import SupConTextEncoder


@pytest.fixture(scope="module")
def vectors(tiny_model, texts):
    """The pretrained mean of all token vectors, one text at a time."""
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(tiny_model), pretrained(tiny_model)
    with torch.no_grad():
        return np.stack([model(**tokenizer(text, return_tensors="pt"))[0][0].mean(0) for text in texts])


def pretrained(folder):
    return transformers.AutoModel.from_pretrained(folder).eval()


def separation(features, labels):
    """Mean cosine of texts of one class, less that of texts of two."""
    cosine = unit(features) @ unit(features).T
    same = labels[:, None] == labels
    return cosine[same].mean() - cosine[~same].mean()


# What the features are


@pytest.mark.parametrize("normalize", [True, False])
def test_a_head_is_equation_one(tiny_model, texts, labels, vectors, normalize):
    encoder = make_encoder(tiny_model, normalize=normalize, n_components=5).fit(texts, labels)
    expected = vectors @ encoder.weight_.T + encoder.bias_
    np.testing.assert_allclose(encoder.transform(texts), unit(expected) if normalize else expected, atol=1e-4)


# What training does


@pytest.mark.parametrize(("finetune", "loss", "normalize"), [("head", "softmax", True), ("full", "supcon", False)])
def test_training_lowers_the_loss_and_brings_class_mates_together(
    tiny_model, texts, labels, vectors, finetune, loss, normalize
):
    encoder = make_encoder(tiny_model, finetune, loss=loss, normalize=normalize, max_iter=20)
    features = encoder.fit(texts, labels).transform(texts)
    curve = encoder.loss_curve_
    assert len(curve) == encoder.n_iter_ == 20
    assert encoder.stop_reason_ == "max_iter"
    assert np.mean(curve[-3:]) < np.mean(curve[:3]) - 0.1
    assert separation(features, labels) > separation(vectors, labels) + 0.07
    assert encoder.validation_scores_ is None
    assert encoder.classes_.tolist() == ["alarm", "balance", "light", "weather"]


@pytest.mark.parametrize(("finetune", "changes"), [("head", False), ("full", True)])
def test_only_full_training_moves_the_text_model(tiny_model, texts, labels, finetune, changes, tmp_path):
    before = pretrained(tiny_model).state_dict()
    make_encoder(tiny_model, finetune, max_iter=1).fit(texts, labels).export(tmp_path / "exported")
    after = pretrained(tmp_path / "exported").state_dict()
    assert before.keys() == after.keys()
    assert changes != all(torch.equal(before[name], after[name]) for name in before)


def test_open_texts_take_no_part(tiny_model, texts, labels, open_texts):
    alone, beside = (make_encoder(tiny_model, "full", max_iter=4) for _ in range(2))
    alone.fit(texts, labels)
    beside.fit([*open_texts[:3], *texts, *open_texts[3:]], ["-1"] * 3 + [*labels] + ["-1"] * 3)
    assert beside.classes_.tolist() == alone.classes_.tolist()
    np.testing.assert_allclose(beside.loss_curve_, alone.loss_curve_, rtol=1e-4)
    np.testing.assert_allclose(beside.weight_, alone.weight_, atol=1e-4)
    np.testing.assert_allclose(beside.transform(texts), alone.transform(texts), atol=1e-4)


@pytest.mark.parametrize("finetune", ["head", "full"])
def test_a_seed_repeats_a_fit_in_threads_too(tiny_model, texts, labels, finetune):
    def weight(seed):
        return make_encoder(tiny_model, finetune, max_iter=2, random_state=seed).fit(texts, labels).weight_

    alone = [weight(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as threads:
        for together, expected in zip(threads.map(weight, range(3)), alone, strict=True):
            np.testing.assert_array_equal(together, expected)


@pytest.mark.parametrize("finetune", MODES)
def test_the_callers_random_state_is_left_alone(build_model, tmp_path, texts, labels, finetune):
    """Not even where a model has weights that are drawn: this one has no pooler."""
    model = build_model(tmp_path / "model", model_class="BertForMaskedLM")

    def states():
        numbers, position = np.random.get_state()[1:3]  # noqa: NPY002
        return torch.get_rng_state().tolist(), numbers.tolist(), position, random.getstate()

    before = states()
    encoder = make_encoder(model, finetune, max_iter=1, random_state=0)
    encoder.fit_transform(texts, labels)
    encoder.transform(texts)
    pickle.loads(pickle.dumps(encoder)).transform(texts)
    encoder.export(tmp_path / "exported")
    assert states() == before
    # Without a seed a fit draws one number from NumPy's generator, and nothing else.
    encoder.set_params(random_state=None).fit(texts, labels)
    after = states()
    np.random.set_state(("MT19937", before[1], before[2]))  # noqa: NPY002
    if finetune != "none":
        np.random.randint(2**31 - 1)  # noqa: NPY002
    assert states() == after


def test_validation_texts_say_how_far_out_new_texts_lie(tiny_model, texts, labels):
    train, new = np.arange(32) % 8 < 5, np.arange(32) % 8 >= 5
    X, y = np.array(texts, dtype=object), np.array(labels)
    encoder = make_encoder(tiny_model, "full", max_iter=5, learning_rate=3e-3, early_stopping=True)
    given = encoder.fit_transform(X[train], y[train], X_val=X[new], y_val=y[new])
    # All training texts are trained on, so all are moved.
    assert (abs(given - encoder.transform(X[train])).max(axis=1) > 1e-6).all()


def test_cross_fitted_features_lie_farther_out_and_change_nothing_else(tiny_model, texts, labels, open_texts):
    both, truth = [*texts, *open_texts], np.array([*labels, *["-1"] * len(open_texts)])
    encoder, plain = (make_encoder(tiny_model, max_iter=20, **more) for more in ({}, {"cross_fit": False}))
    crossed, seen = encoder.fit_transform(both, truth), plain.fit_transform(both, truth)
    np.testing.assert_array_equal(encoder.weight_, plain.weight_)
    known = truth != "-1"
    # Texts that take no part in training are new to the head anyway.
    np.testing.assert_allclose(crossed[~known], seen[~known])

    def spread(features):
        return np.mean([features[truth == c].std(axis=0).mean() for c in np.unique(truth[known])])

    assert spread(crossed) > spread(seen)


@pytest.mark.parametrize(
    ("finetune", "learning_rate", "batch_size", "max_iter"), [("head", 1e-3, 256, 60), ("full", 5e-5, 64, 4)]
)
def test_automatic_settings_are_those_documented(
    tiny_model, texts, labels, finetune, learning_rate, batch_size, max_iter
):
    # More texts than fit into a batch.
    n_times = batch_size // len(texts) + 1
    many, truth = [f"{text} {i}" for i in range(n_times) for text in texts], np.tile(labels, n_times)

    def fit(**parameters):
        encoder = SupConTextEncoder(tiny_model, finetune=finetune, duplicates="off", random_state=0, **parameters)
        return encoder.fit(many, truth)

    documented = fit(learning_rate=learning_rate, batch_size=batch_size, max_iter=max_iter)
    np.testing.assert_array_equal(fit().weight_, documented.weight_)


def many_texts(texts, labels, n_each):
    """So many different texts of each class; there are 8 of each of the 4 classes."""
    many = [f"{text} {i}" for i in range(-(-n_each // 8)) for text in texts]
    return many[: 4 * n_each], np.resize(labels, 4 * n_each)


@pytest.mark.parametrize(("n_each", "mode"), [(74, "none"), (75, "head")])
def test_the_automatic_mode_is_chosen_by_texts_per_class(tiny_model, texts, labels, open_texts, n_each, mode):
    many, truth = many_texts(texts, labels, n_each)
    # Neither copies of a text nor open texts count.
    many, truth = [*many, *many[:20], *open_texts], np.append(truth, [*truth[:20], *["-1"] * len(open_texts)])
    automatic = make_encoder(tiny_model, "auto", max_iter=2)
    chosen = make_encoder(tiny_model, mode, max_iter=2, learning_rate=3e-3)
    np.testing.assert_array_equal(automatic.fit_transform(many, truth), chosen.fit_transform(many, truth))
    np.testing.assert_array_equal(automatic.transform(texts), chosen.transform(texts))
    assert (automatic.finetune_, automatic.finetune) == (mode, "auto")


def test_feature_names_and_data_frames(tiny_model, texts):
    encoder = make_encoder(tiny_model, "none").fit(texts)
    names = [f"supcontextencoder{i}" for i in range(32)]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.set_output(transform="pandas").transform(texts).columns.tolist() == names


def test_an_unfitted_encoder_says_so(tiny_model, tmp_path):
    encoder = make_encoder(tiny_model)
    for use, *given in (
        (encoder.transform, ["alarm"]),
        (encoder.export, tmp_path / "a"),
        (encoder.get_feature_names_out,),
    ):
        with pytest.raises(NotFittedError):
            use(*given)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("finetune", MODES)
def test_a_fit_that_was_interrupted_changes_nothing(tiny_model, texts, labels, finetune, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    encoder, new = make_encoder(tiny_model, finetune), make_encoder(tiny_model, finetune)
    before = encoder.fit(texts, labels).transform(texts)
    monkeypatch.setattr(torch.optim.AdamW, "step", interrupt)
    if finetune == "none":
        monkeypatch.setattr(transformers.BertModel, "forward", interrupt)
    for each in (encoder, new):
        with pytest.raises(KeyboardInterrupt):
            each.fit(texts, labels)
    monkeypatch.undo()
    np.testing.assert_array_equal(encoder.transform(texts), before)
    with pytest.raises(NotFittedError):
        new.transform(texts)


def test_the_automatic_mode_does_what_was_asked_for(tiny_model, texts, labels):
    five = make_encoder(tiny_model, "auto", n_components=5, max_iter=1)
    assert five.fit(texts, labels).transform(texts).shape[1] == 5
    # A single class has nothing to be separated from, so that nothing is trained, without a warning.
    many = many_texts(texts, labels, 75)[0]
    assert make_encoder(tiny_model, "auto").fit(many, np.repeat("a", len(many))).finetune_ == "none"
    with pytest.warns(UserWarning, match="y has the single known class 'a'"):
        five.fit(texts, np.repeat("a", len(texts)))
    with pytest.raises(ValueError, match="n_components=5 needs a linear layer, but finetune='none' has none"):
        five.set_params(finetune="none").fit(texts)
    with pytest.raises(ValueError, match="SupConTextEncoder with finetune='auto'"):
        make_encoder(tiny_model, "auto").fit(texts)
