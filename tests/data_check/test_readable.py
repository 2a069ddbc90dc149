"""The check of training texts by an embedding model: lengths, languages, and texts that it cannot read."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, TunedOperatingPointCV, check_training_texts
from skellipsoid.datasets import load_assistant_intents


def test_every_holder_of_an_encoder_tells_the_limit(tiny_model, texts, labels):
    encoder = SupConTextEncoder(tiny_model, max_length=20)
    pipe = Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier())])
    long, y = [*texts, "rain " * 19], [*labels, "weather"]
    for holder in (
        encoder,
        pipe,
        Pipeline([("only", encoder)]),
        Pipeline([("inner", pipe)]),
        GridSearchCV(pipe, {"clf__beta": [0.5]}),
        TunedOperatingPointCV(pipe),
    ):
        assert "than the 20 that" in check_training_texts(long, y, encoder=holder).message[0]


def test_without_the_default_model_lengths_are_not_checked(monkeypatch, tmp_path, texts, labels):
    monkeypatch.setattr("skellipsoid._encoders.torch.model_lookup.packaged_model", lambda name: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    long, y = [*texts, "snow " * 999, ""], [*labels, "weather", "alarm"]
    assert check_training_texts(long, y).kind.tolist() == ["empty_texts"]
    with pytest.raises(OSError, match="is no folder here"):
        check_training_texts(long, y, encoder=SupConTextEncoder())


SPOKEN = {
    "pt": ["onde está a encomenda", "quero cancelar o pedido", "um alarme para as seis", "qual é o saldo da conta"],
    "de": ["wo bleibt meine Sendung", "Bestellung bitte stornieren", "den Wecker auf sechs Uhr stellen", "Kontostand"],
    "zh": ["我的包裹在哪里", "我想取消订单", "请帮我设置闹钟", "我的账户余额是多少"],
    "ja": ["私の荷物はどこですか", "注文をキャンセルしたいです", "六時に目覚ましをかけて", "口座の残高を教えて"],
}


@pytest.mark.parametrize("language", SPOKEN)
def test_a_language_that_the_text_model_hardly_knows_is_said(minilm, language):
    del minilm
    said = [f"{text} {i}" for text in SPOKEN[language] for i in range(6)]
    findings = check_training_texts(said, np.repeat(["a", "b", "c", "d"], 6))
    message = findings.message[findings.kind.tolist().index("language")]
    assert f"look like the language {language!r}" in message
    assert "Other languages" in message


def test_english_texts_are_read_also_with_emoji_typos_and_codes(minilm):
    del minilm
    train = load_assistant_intents(subset="train")
    worn = [f"{text.swapcase()} 👍 :-) #{i:04} xK-{i}" if i % 2 else text for i, text in enumerate(train.data)]
    kinds = check_training_texts(worn, train.target).kind
    assert not {"unread_texts", "language"} & {*kinds}
    assert check_training_texts(train.data, train.target).kind.tolist() == []


def test_texts_of_which_the_text_model_knows_nothing_are_named(minilm, texts, labels):
    del minilm
    lost = ["👍", "🎉🎉", "ยกเลิกคำสั่งซื้อ", "?!", "…"]
    found = check_training_texts([*texts, *lost], [*labels, *labels[:5]])
    assert found.kind.tolist() == ["unread_texts"]
    assert found.rows[0] == tuple(range(32, 37))
    assert found.message[0] == (
        "The embedding model reads nothing of 5 texts in rows 32, 33, 34, 35, 36, such as '👍', '🎉🎉', "
        "'ยกเลิกคำสั่งซื้อ': no letter, digit or emoji that it knows, so that they are all alike to it; leave them out, "
        "or take an embedding model that reads them."
    )
