"""A text model in skellipsoid_runtime, beside the package itself: start, one text, memory, answers; and in int8.

``serve``: ten new processes of each, in turns, one thread: import, load and the first answer; the median and the
fastest of 50 short texts, one at a time; resident memory after them; the size of the installed packages; and the
answers to 10,000 texts.
``int8``: F1 on development rows, frozen all-MiniLM-L6-v2, half of the classes known, those held out are open; texts per
second in turns with the graph in single precision, one thread.
``start``: the command ``skellipsoid predict`` with one line, from its start to its end, without and with the export of
``skellipsoid export`` beside the model, in turns, one thread; and what its imports take without it, by package.

    python studies/runtime.py serve --data-home ../../../shared/data > results/runtime.rst
    python studies/runtime.py int8 --data-home ../../../shared/data --per-class 40 > results/runtime_int8.rst
    python studies/runtime.py start > results/runtime_start.rst
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
from features import FETCHERS, known_classes
from sklearn.pipeline import make_pipeline

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets
from skellipsoid.metrics import open_set_f1_score

ROOT = Path(__file__).parents[3]
N_PROCESSES, N_TEXTS, NEAR = 10, 10_000, 1e-4
N_STARTS = 7
#: Packages that are imported for others, by those whose imports they are.
IMPORTED_BY = {
    **dict.fromkeys(("sklearn", "scipy", "joblib", "threadpoolctl", "narwhals", "pandas", "pyarrow"), "scikit-learn"),
    **dict.fromkeys(("torch", "torchgen", "sympy", "mpmath", "networkx"), "torch"),
    **dict.fromkeys(("transformers", "sentence_transformers", "huggingface_hub"), "transformers"),
    "skellipsoid": "skellipsoid",
}
RATIO, SEED = 0.5, 0
#: What a process prints, and how it is shown.
ROWS = [
    ("import, load and first answer, s", ".2f"),
    ("one short text, median of 50, ms", ".1f"),
    ("one short text, fastest of 50, ms", ".1f"),
    ("resident memory, MiB", ".0f"),
]
NAMES = ("runtime", "package")
#: A process that starts, answers, and prints what it took.
PROCESS = """
import json, statistics, sys, time
start = time.perf_counter()
kind, folder = sys.argv[1:3]
if kind == "package":
    import skellipsoid
    model = skellipsoid.load(folder)
else:
    from skellipsoid_runtime import OnnxPipeline
    model = OnnxPipeline(folder)
model.predict(["where is my parcel"])
first = time.perf_counter() - start
seconds = []
for _ in range(50):
    start = time.perf_counter()
    model.predict(["where is my parcel"])
    seconds.append(time.perf_counter() - start)
status = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Vm"))
milliseconds = 1000 * statistics.median(seconds), 1000 * min(seconds)
print(json.dumps([first, *milliseconds, int(status["VmRSS"].split()[0]) / 1024]))
"""


def main():
    """Print the tables of a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("serve", "int8", "start"))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="+", choices=list(FETCHERS), default=list(FETCHERS), help="for int8")
    parser.add_argument("--per-class", type=int, default=None, help="training texts of each class (default: all)")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "packages" / "skellipsoid-runtime"))
    with tempfile.TemporaryDirectory() as folder:
        if options.part == "serve":
            serve(Path(folder), options.data_home)
        elif options.part == "start":
            start(Path(folder))
        else:
            int8(Path(folder), options)


def table(title, header, rows):
    """Print a table of reStructuredText."""
    print(f".. list-table:: {title}\n   :header-rows: 1\n")
    for row in [header, *rows]:
        print("\n".join(f"   {'* -' if not i else '  -'} {cell}" for i, cell in enumerate(row)))
    print(flush=True)


def serve(folder, data_home):
    """Start processes of both in turns, and compare answers."""
    from skellipsoid_runtime import OnnxPipeline

    pipe, environment = fitted(), one_thread()
    skellipsoid.save(pipe, folder / "package")
    skellipsoid.export_onnx(pipe, folder / "runtime")
    found = {"package": [], "runtime": []}
    for _ in range(N_PROCESSES):
        for kind, results in found.items():
            command = [sys.executable, "-c", PROCESS, kind, str(folder / kind)]
            done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
            results.append(json.loads(done.stdout))
    small, large = ([statistics.median(column) for column in zip(*found[kind], strict=True)] for kind in NAMES)
    # Nearly the same moment in each pair: ratios do not depend on what else the machine does.
    pairs = [np.divide(package, runtime) for package, runtime in zip(found["package"], found["runtime"], strict=True)]
    ratios = np.median(pairs, axis=0)
    sizes = installed(["skellipsoid"]), installed(["numpy", "onnxruntime", "tokenizers"])
    rows = zip(ROWS, large, small, ratios, strict=True)
    table(
        f"Medians of {N_PROCESSES} processes of each, in turns",
        ["What", "skellipsoid", "skellipsoid-runtime", "Ratio"],
        [
            *([what, f"{slow:{form}}", f"{fast:{form}}", f"{ratio:.1f}"] for (what, form), slow, fast, ratio in rows),
            [
                "installed packages without the model, MB",
                *(f"{size:.0f}" for size in sizes),
                f"{sizes[0] / sizes[1]:.1f}",
            ],
        ],
    )
    many = [text for data in FETCHERS for text in FETCHERS[data](subset="train", data_home=data_home).data[:3334]]
    many = many[:N_TEXTS]
    features = pipe[:-1].transform(many)
    answers, scores = pipe[-1].predict(features), pipe[-1].score_samples(features)
    other = OnnxPipeline(folder / "runtime").answers(many)
    decided = np.abs(scores) > NEAR
    differ = int((answers != other["label"])[decided].sum())
    print(
        f"Of {len(many)} texts {int(decided.sum())} have a score that is further than {NEAR} from the boundary; "
        f"{differ} of their answers differ. The largest difference of a score is "
        f"{np.abs(scores - other['score']).max():.1e}."
    )


def fitted():
    """Fit a head on the text model of the package, to the intents of an assistant."""
    texts, intents = datasets.load_assistant_intents(return_X_y=True)
    encoder = SupConTextEncoder(finetune="head", random_state=SEED)
    return make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=SEED)).fit(texts, intents)


def one_thread():
    """Environment of a process with one thread, which finds both packages."""
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "packages" / "skellipsoid-runtime")))
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}


def start(folder):
    """Time the command predict from its start to its end, with and without an export, and its imports."""
    names = {"without": folder / "without", "with": folder / "with"}
    pipe, environment = fitted(), one_thread()
    for place in names.values():
        skellipsoid.save(pipe, place)
    command = [sys.executable, "-m", "skellipsoid"]
    subprocess.run([*command, "export", "--model", names["with"]], env=environment, check=True, capture_output=True)
    seconds = {name: [] for name in names}
    for turn in range(N_STARTS + 1):  # the first turn reads the files from the disk, and is not counted
        for name, place in names.items():
            began = time.perf_counter()
            answer(command, place, environment)
            if turn:
                seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    ratio = statistics.median(np.divide(seconds["without"], seconds["with"]))
    rows = [
        ["the saved model", f"{medians['without']:.2f}", f"{min(seconds['without']):.2f}"],
        ["the export beside it", f"{medians['with']:.2f}", f"{min(seconds['with']):.2f}"],
        ["Ratio", f"{ratio:.1f}", f"{min(seconds['without']) / min(seconds['with']):.1f}"],
    ]
    title = f"Seconds of skellipsoid predict for one line, {N_STARTS} processes of each, in turns"
    table(title, ["What answers", "Median", "Fastest"], rows)
    taken = imports([sys.executable, "-X", "importtime", "-m", "skellipsoid"], names["without"], environment)
    shares = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in taken)
    print(f"Imports of the saved model, with those that each needs (-X importtime): {shares}.")


def answer(command, model, environment):
    """Let a process answer one line; gives what it writes to standard error."""
    words = [*command, "predict", "--model", str(model)]
    return subprocess.run(
        words, env=environment, input="where is my parcel", capture_output=True, check=True, text=True
    ).stderr


def imports(command, model, environment):
    """Seconds of the imports of a process, by package, the slowest first."""
    found = Counter()
    for own, name in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\w+)", answer(command, model, environment), re.M):
        found[IMPORTED_BY.get(name, "all others")] += int(own) / 1e6
    return found.most_common()


def installed(names):
    """Megabytes of packages and of all that they require, as they are installed here."""
    seen, waiting, n_bytes = set(), [*names], 0
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system
            continue
        for file in distribution.files or ():
            path = Path(str(file.locate()))
            n_bytes += path.stat().st_size if path.is_file() and path.suffix != ".pyc" else 0
        for line in distribution.requires or ():
            if "extra ==" not in line:
                waiting.append(re.match(r"[\w.-]+", line)[0])
    return n_bytes / 1e6


def int8(folder, options):
    """F1 and texts per second of the graph in 8-bit integers, beside that in single precision."""
    import onnx

    from skellipsoid_runtime import OnnxPipeline

    rows = []
    for data in options.data:
        known = known_classes(data, RATIO, SEED, options.data_home)
        train, dev = (FETCHERS[data](subset=subset, data_home=options.data_home) for subset in ("train", "dev"))
        chosen = np.concatenate([np.flatnonzero(train.target == label)[: options.per_class] for label in known])
        encoder = SupConTextEncoder(finetune="none", keep_texts=True)
        pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=SEED))
        pipe.fit(np.asarray(train.data, dtype=object)[chosen], np.asarray(train.target)[chosen])
        truth = np.where(np.isin(dev.target, known), dev.target, "-1")
        new = list(dev.data)
        skellipsoid.export_onnx(pipe, folder / f"{data}-float")
        skellipsoid.export_onnx(pipe, folder / f"{data}-int8", quantize=True)
        models = [OnnxPipeline(folder / f"{data}-{kind}") for kind in ("float", "int8")]
        plain, quantized = (model.answers(new) for model in models)
        graph = onnx.load(folder / f"{data}-int8" / "model.onnx").graph
        numbers = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        before = (quantized["score"] - numbers["quantized_shift"]) / numbers["quantized_factor"]
        as_it_was = np.where(before < 0, "-1", quantized["nearest_class"])
        f1 = [
            100 * open_set_f1_score(truth, answers, labels=known, zero_division=0)
            for answers in (plain["label"], as_it_was, quantized["label"])
        ]
        seconds = [[], []]
        for _ in range(5):
            for model, own in zip(models, seconds, strict=True):
                start = time.perf_counter()
                model.predict(new[:200])
                own.append(time.perf_counter() - start)
        faster = statistics.median(a / b for a, b in zip(*seconds, strict=True))
        cosine = float((plain["features"] * quantized["features"]).sum(axis=1).mean())
        same = float((plain["label"] == quantized["label"]).mean())
        texts = [f"{value:.2f}" for value in (*f1, f1[2] - f1[0])]
        rows.append([data, *texts, f"{100 * same:.1f} %", f"{cosine:.3f}", f"{faster:.2f}"])
        print(rows[-1], file=sys.stderr, flush=True)
    table(
        f"Development rows, {RATIO:.0%} of the classes known with {options.per_class or 'all'} training texts each",
        [
            *("Data", "F1, float", "F1, int8, boundaries as they were", "F1, int8", "Change"),
            *("Same answers", "Cosine", "Texts/s, int8 to float"),
        ],
        rows,
    )


if __name__ == "__main__":
    main()
