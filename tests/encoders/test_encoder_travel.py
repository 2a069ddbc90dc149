"""``SupConTextEncoder`` after a fit: its device, its precision, its export, its texts and their hash."""

import hashlib
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from text_models import make_encoder


def test_a_device_that_is_missing_is_refused_before_fit_and_replaced_after(tiny_model, texts, labels):
    missing = "cuda:7" if torch.cuda.is_available() else "cuda"
    with pytest.raises(ValueError, match=f"device='{missing}' is not available on this machine"):
        make_encoder(tiny_model, device=missing).fit(texts, labels)
    encoder = make_encoder(tiny_model, device="cpu").fit(texts, labels)
    expected = encoder.transform(texts)
    moved = pickle.loads(pickle.dumps(encoder.set_params(device=missing)))
    np.testing.assert_array_equal(moved.transform(texts), expected)


def test_export_takes_an_empty_folder_and_touches_no_other(tiny_model, texts, tmp_path):
    encoder = make_encoder(tiny_model, "none").fit(texts)
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    encoder.export(empty)
    assert (empty / "modules.json").is_file()
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    for taken in [full, full / "notes.txt"]:
        with pytest.raises(FileExistsError, match="exists and is not an empty folder; export into a new folder"):
            encoder.export(taken)
    assert [(p.name, p.read_text()) for p in full.iterdir()] == [("notes.txt", "mine")]


def test_the_hash_of_the_training_data_is_that_of_their_file(tiny_model, texts, labels, tmp_path):
    file = tmp_path / "data.tsv"
    file.write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)), encoding="utf-8")
    wanted = hashlib.sha256(file.read_bytes()).hexdigest()
    encoder = make_encoder(tiny_model, max_iter=1)
    assert encoder.fit(texts, labels).training_data_sha256_ == wanted
    assert encoder.fit(texts[::-1], labels[::-1]).training_data_sha256_ != wanted
    encoder.set_params(finetune="none").fit(texts)
    assert encoder.training_data_sha256_ == hashlib.sha256("".join(f"{text}\n" for text in texts).encode()).hexdigest()


@pytest.mark.parametrize("finetune", ["head", "full"])
@pytest.mark.filterwarnings("ignore:dtype='bfloat16' is slower")
def test_bfloat16_gives_nearly_the_same_features(tiny_model, texts, labels, finetune):
    exact = make_encoder(tiny_model, finetune, max_iter=4).fit(texts, labels)
    encoder = clone(exact).set_params(dtype="bfloat16").fit(texts, labels)
    expected, found = exact.transform(texts), encoder.transform(texts)
    assert found.dtype == np.float32
    assert 1e-4 < np.linalg.norm(found - expected, axis=1).max() < 0.1
    # The weights stay in single precision: of the same ones, both kinds of features can be had, in any order.
    if finetune != "head":  # whose layer was trained on other embeddings
        np.testing.assert_array_equal(exact.set_params(dtype="bfloat16").transform(texts), found)
    np.testing.assert_array_equal(exact.set_params(dtype="float32").transform(texts), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(texts), found)


def test_a_processor_that_is_slower_in_bfloat16_is_named(this_machine, monkeypatch, tiny_model, texts):
    encoder = make_encoder(tiny_model, "none", device="cpu", dtype="bfloat16")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": False}, raising=False)
    with pytest.warns(UserWarning, match="no AMX; use dtype='float32' here"):
        encoder.fit(texts)
    for capabilities in ({"amx_bf16": True}, {"architecture": "aarch64"}):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=capabilities: found, raising=False)
        encoder.fit(texts)


def test_texts_are_kept_if_asked_for(tiny_model, texts, labels, open_texts):
    given = [*texts, texts[0].upper(), *open_texts]
    truth = np.array([*labels, labels[0], *["-1"] * len(open_texts)])
    encoder = make_encoder(tiny_model, max_iter=1, keep_texts=True)
    encoder.fit_transform(given, truth)
    distinct = [*texts, *open_texts]
    assert encoder.training_texts_.tolist() == distinct
    assert encoder.training_labels_.tolist() == [*labels, *["-1"] * len(open_texts)]
    np.testing.assert_allclose(encoder.training_features_, encoder.transform(distinct), atol=1e-6)
    # Labels are optional, and checked.
    assert encoder.set_params(finetune="none").fit(texts).training_labels_ is None
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        encoder.fit(texts, labels[:-1])
    encoder.set_params(keep_texts=False).fit(given, truth)
    assert not [name for name in vars(encoder) if name.startswith("training_") and name != "training_data_sha256_"]
