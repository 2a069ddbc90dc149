"""The page *Coming from*: how other packages answer the two messages of the page. Prints what each answers.

``python studies/coming_from.py pyod``, ``cleanlab``, ``semantic_router`` and ``setfit`` run in the environments of
``environments``; ``prompt`` asks the server that ``OPENAI_BASE_URL`` names for ``OPENAI_MODEL``. ``label_issues``, in
the environment of ``cleanlab``, prints how many of 12 wrong labels are found, in each of six draws.
"""

import contextlib
import os
import sys
import tempfile

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, predict_open_proba
from skellipsoid._encoders.torch.model_lookup import packaged_model
from skellipsoid.datasets import load_assistant_intents

FOLDER = str(packaged_model("sentence-transformers/all-MiniLM-L6-v2"))


def pyod(X, labels, X_new):
    from pyod.models.knn import KNN

    detector = KNN(contamination=0.1).fit(X)
    classifier = LogisticRegression(C=10, max_iter=1000)
    classifier.fit(X, labels)
    is_open = detector.predict(X_new) == 1
    return np.where(is_open, "-1", classifier.predict(X_new))


def cleanlab(X, labels, X_new):
    from cleanlab.outlier import OutOfDistribution

    detector = OutOfDistribution()
    limit = np.quantile(detector.fit_score(features=X), 0.05)
    classifier = LogisticRegression(C=10, max_iter=1000)
    classifier.fit(X, labels)
    is_open = detector.score(features=X_new) < limit
    return np.where(is_open, "-1", classifier.predict(X_new))


def label_issues(X, labels):
    from cleanlab.filter import find_label_issues

    numbers = np.unique(labels, return_inverse=True)[1]
    found = np.empty((len(X), numbers.max() + 1))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for rest, part in folds.split(X, labels):
        clf = EllipsoidOpenSetClassifier(random_state=0)
        clf.fit(X[rest], labels[rest])
        found[part] = predict_open_proba(clf, X[part])[:, :-1]
    return find_label_issues(
        numbers,
        found / found.sum(axis=1, keepdims=True),
        filter_by="low_self_confidence",
        return_indices_ranked_by="self_confidence",
    )


def found_issues(X, labels, n_wrong=12, n_read=24):
    """How many of wrong labels are among the first rows, in each of six draws."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        given = labels.copy()
        rows = rng.choice(len(labels), n_wrong, replace=False)
        for row in rows:
            given[row] = rng.choice(np.setdiff1d(labels, labels[row]))
        yield len({*label_issues(X, given)[:n_read].tolist()} & {*rows.tolist()})


def semantic_router(texts, labels, new):
    from semantic_router import IndexedRouter, Route
    from semantic_router.encoders import LocalEncoder

    routes = [Route(name=name, utterances=texts[labels == name].tolist()) for name in np.unique(labels)]
    router = IndexedRouter(LocalEncoder(name=FOLDER), routes)
    dev, truth = load_assistant_intents(subset="dev", return_X_y=True)
    router.fit(list(dev), [None if name == "-1" else name for name in truth])
    router.confidence_threshold = 0.5
    return [router(text).name or "-1" for text in new]


def setfit(texts, labels, new):
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    rows = Dataset.from_dict({"text": list(texts), "label": list(labels)})
    model = SetFitModel.from_pretrained(FOLDER)
    settings = TrainingArguments(max_steps=20, report_to="none")
    Trainer(model, args=settings, train_dataset=rows).train()
    probability = model.predict_proba(list(new), as_numpy=True)
    known = np.asarray(model.model_head.classes_)
    answers = known[probability.argmax(axis=1)]
    return np.where(probability.max(axis=1) < 0.5, "-1", answers)


def prompt(labels, new):
    from openai import OpenAI

    names = sorted(set(labels))
    task = f"Which intent? One of: {', '.join(names)}. Else: none."
    client, answers = OpenAI(), []
    for text in new:
        said = client.chat.completions.create(
            model=os.environ["OPENAI_MODEL"],
            messages=[
                {"role": "system", "content": task},
                {"role": "user", "content": text},
            ],
        )
        name = said.choices[0].message.content.strip()
        answers.append(name if name in names else "-1")
    return answers


def main():
    texts, labels = load_assistant_intents(return_X_y=True)
    texts, labels = np.asarray(texts), np.asarray(labels)
    new = ["wake me up at half past six", "tell me a joke"]
    name = sys.argv[1]
    if name in ("pyod", "cleanlab"):
        encoder = SupConTextEncoder(finetune="none")
        print(name, globals()[name](encoder.fit_transform(texts), labels, encoder.transform(new)))
    elif name == "label_issues":
        found = list(found_issues(SupConTextEncoder(finetune="none").fit_transform(texts), labels))
        print(name, found, np.mean(found))
    elif name == "prompt":
        print(name, prompt(labels, new))
    else:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # SetFit makes a folder here
            print(name, globals()[name](texts, labels, new))


if __name__ == "__main__":
    main()
