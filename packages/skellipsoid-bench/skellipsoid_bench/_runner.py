"""The runner: runs what the file of results lacks, in one process or several, and writes each result at once."""

import os
import re
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from itertools import product
from pathlib import Path
from typing import Any

from joblib import cpu_count
from tqdm import tqdm

from skellipsoid._base import resolve_device, warn

from ._case import Run, Task, case_features, forget, run_method
from ._data import load_data
from ._encoders import takes_dev
from ._plan import Plan, make_plan
from ._store import Record, append_result, describe, name_of, read_results, replace_result, writing

#: Where embeddings and features of trained encoders are kept.
CACHE = Path("~", ".cache", "skellipsoid", "benchmark")


class BenchmarkError(RuntimeError):
    """Some runs of a benchmark failed; the results of all others are in the file of results."""


#: What became of a run: its record, or what went wrong.
Outcome = tuple[Run, Record | str]
Name = tuple[Any, ...]


def run(
    results: str | os.PathLike[str],
    *,
    plan: str | os.PathLike[str] | None = None,
    data: Sequence[Any] | None = None,
    ratios: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
    encoders: Sequence[Any] | None = None,
    methods: Sequence[Any] | None = None,
    n_splits: int | None = None,
    data_home: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    device: str = "auto",
    rerun: bool = False,
    save_predictions: str | os.PathLike[str] | None = None,
    debug: bool = False,
    verbose: int = 0,
) -> list[Record]:
    """Run each method with each encoder on each case; runs that have a result are not repeated.

    A case is one data set, known-class ratio and seed. The protocol is that of the literature: the seed draws the known
    classes, the encoder and the method are trained on the training samples of these classes only, and the test samples
    of all other classes are open. If a benchmark is interrupted at any moment, the same call continues it.

    Parameters
    ----------
    results : str or path-like
        File of JSON lines. One line is appended when a run is complete.
    plan : str or path-like, default=None
        TOML file with any of the parameters from ``data`` to ``data_home``. Paths in it are relative to its folder. An
        argument of this function replaces the entry of the plan. Data sets, encoders and methods of the plan can be
        selected by their names.
    data : sequence, default=None
        ``"banking"``, ``"oos"``, ``"stackoverflow"``; ``"assistant"``, the corpus that ships with the package; a folder
        with ``train.tsv``, ``test.tsv`` and optionally ``dev.tsv``, each of ``text<TAB>label`` lines; a file of texts
        and labels, as ``skellipsoid train`` reads it (CSV, TSV, JSON lines, parquet, the first sheet of a workbook); or
        an ``.npz`` file of features with ``X_train``, ``y_train``, ``X_test``, ``y_test``. A dict has the keys
        ``name``, ``path`` and ``open_label``, the label of samples that are open; for a single file also
        ``text_column``, ``label_column``, ``split``, a column of train, dev and test, and ``test_share`` of each class
        without it (0.3). ``None``: the first three.
    ratios : sequence of float, default=None
        Shares of the classes that are known. ``None``: 0.25, 0.5, 0.75.
    seeds : sequence of int, default=None
        Each seed draws the known classes, and is the ``random_state`` of encoder and method. ``None``: 0 to 4.
    encoders : sequence, default=None
        ``"none"``, ``"head"`` or ``"full"``, the ``finetune`` of :class:`~skellipsoid.SupConTextEncoder` with
        ``layers="last"``, as in the literature; ``"head:MODEL"`` for another text model; or a dict of a name and
        parameters of the encoder. The name of a text encoder of :mod:`skellipsoid.baselines`. ``"texts"`` gives the
        texts themselves to methods that take texts. The folder of any sentence-transformers model is used as it is.
        ``"module:Class"``, an unfitted transformer of texts (for instance a Pipeline), or a dict of ``name``,
        ``estimator`` and ``params`` is an encoder of your own, trained in each case. ``None``: the head.
    methods : sequence, default=None
        Names of :func:`short_names`; ``"module:Class"`` or an unfitted estimator for one of your own
        (:ref:`own_method`); or a dict with the keys ``name``, ``estimator``, ``params``, ``search`` and ``encoder``.
        ``search`` maps parameters to lists of values. The values with the best mean F1 over the folds of
        ``OpenSetKFold``, on train and dev samples of the known classes, are chosen; the encoder is trained again in
        each fold. ``encoder`` is the name of the only encoder that the method is run with. ``None``: ``"ellipsoid"``.
    n_splits : int, default=None
        Folds of the search, at most the number of known classes. ``None``: 5.
    data_home : str or path-like, default=None
        Folder of the public data sets, see :func:`~skellipsoid_bench.datasets.fetch_banking77`.
    cache : str or path-like, default=None
        Folder of embeddings and features, stored under a hash of everything that they depend on. ``None``:
        ``~/.cache/skellipsoid/benchmark``. It can be deleted at any time.
    n_jobs : int, default=1
        Number of processes, which show a warning of many runs once. Each computes with as many threads as the
        environment variable ``OMP_NUM_THREADS`` says; without it, the CPU cores are divided among the processes.
    device : str, default="auto"
        Device of torch.
    rerun : bool, default=False
        Whether to run anew the results of another ``answers_version`` or of other source code of a method
        (:ref:`own_method`). Each new result replaces the old one. ``False``: a warning names the methods.
    save_predictions : str or path-like, default=None
        Folder for one CSV file per run, with label, score and prediction of each test sample. ``None``: none is
        written.
    debug : bool, default=False
        Whether the error of a method ends the benchmark, with its traceback. ``False``: all other runs go on, and the
        messages are told at the end.
    verbose : int, default=0
        1: a progress bar on a terminal, and how many were run. 2: one line for each run, too.

    Returns
    -------
    records : list of dict
        The results of all runs of the plan, in its order. Metrics are in percent. See
        :ref:`the guide <benchmark_runner>` for the keys.

    Raises
    ------
    ValueError
        If the plan cannot be used, or if a name in the file of results has other parameters than in the plan.
    OSError
        If a file is missing, or if another process writes the results.
    BenchmarkError
        At the end, if runs failed. The results of all others are written. The next call tries the failed runs again.

    See Also
    --------
    read_results : Reads the file.
    make_table : Makes tables of the results, with the figures of the paper.

    Examples
    --------
    >>> from skellipsoid_bench import make_table, run
    >>> records = run("results.jsonl", data=["assistant"], seeds=[0], encoders=["none"])  # doctest: +SKIP
    >>> print(make_table(records).to_markdown())  # doctest: +SKIP
    """
    if n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs!r} must be a number of processes from 1 on.")
    resolve_device(device)
    made = make_plan(
        plan,
        data=data,
        ratios=ratios,
        seeds=seeds,
        encoders=encoders,
        methods=methods,
        n_splits=n_splits,
        data_home=data_home,
    )
    folder = Path(CACHE if cache is None else cache).expanduser().absolute()
    predictions = None if save_predictions is None else str(Path(save_predictions).expanduser().absolute())
    try:
        with writing(Path(results)):
            done = {name_of(record): record for record in read_results(results)}
            wanted = list(_wanted(made, str(folder), device, predictions))
            _check_same(wanted, done)
            stale = _stale(wanted, done, rerun=rerun)
            todo = _todo(wanted, done, stale if rerun else set())
            _run_missing(todo, Path(results), done, n_jobs, verbose, debug=debug)
            if verbose:
                n_run = sum(map(len, todo))
                tqdm.write(f"{n_run} of {len(wanted)} were run, {len(wanted) - n_run} were there")
            return [done[each.name] for each in wanted]
    finally:
        forget()


def _stale(wanted: list[Run], done: Mapping[Name, Record], *, rerun: bool) -> set[Name]:
    """Find the results of other predictions, and say once what is true of results that count nevertheless."""
    there = [(run, done[run.name]) for run in wanted if run.name in done]
    kinds: dict[str, Callable[[Run, Record], bool]] = {
        "of another answers_version than that of today": lambda run, record: (
            record.get("answers_version", {}) != run.answers
        ),
        "by other source code than that of today": lambda run, record: (
            record.get("sources", run.sources) != run.sources
        ),
    }
    every: set[Name] = set()
    for what, differs in kinds.items():
        stale = {run.name: run.method.name for run, record in there if differs(run, record)}
        every |= {*stale}
        if stale and not rerun:
            warn(
                f"Results {what}: {len(stale)}, of {', '.join(dict.fromkeys(stale.values()))}; pass rerun=True "
                "(--rerun) to run them anew."
            )
    if n_missing := sum(run.task.predictions is not None and not record.get("predictions") for run, record in there):
        warn(
            f"Results without predictions, since they were run without save_predictions: {n_missing}; use another file "
            "of results to have them."
        )
    return every


def _run_missing(
    todo: list[list[Run]], file: Path, done: dict[Name, Record], n_jobs: int, verbose: int, *, debug: bool
) -> None:
    """Run everything, write each result, and say at the end what failed."""
    n_todo = sum(map(len, todo))
    problems = []
    with tqdm(total=n_todo, desc="benchmark", unit="run", disable=None if verbose else True) as progress:
        for run, found in _execute(todo, n_jobs, verbose, _raise if debug else _attempt):
            progress.update()
            if isinstance(found, str):
                said = f"failed ({found})"
                problems.append(f"{describe(*run.name)}: {found}")
            else:
                said = f"F1 {found['f1']:.2f}, accuracy {found['accuracy']:.2f} ({found['fit_seconds']:.1f} s)"
                write = replace_result if run.name in done else append_result
                write(file, found)
                done[run.name] = found
            if verbose > 1:
                tqdm.write(f"{describe(*run.name)}: {said}")
    if problems:
        raise BenchmarkError(
            f"{len(problems)} of {n_todo} runs failed, start again to try them anew; the first is {problems[0]}"
        )


def _wanted(plan: Plan, cache: str, device: str, predictions: str | None) -> Iterator[Run]:
    """Every run of the plan: all methods of a case after each other, all cases of a seed before the next seed."""
    for seed, data, ratio, encoder in product(plan.seeds, plan.data, plan.ratios, plan.encoders):
        used = encoder if load_data(data, plan.data_home).is_text else None
        if used is None and encoder is not plan.encoders[0]:
            continue
        name = None if used is None else used.name
        methods = [method for method in plan.methods if method.encoder in (None, name)]
        needs_dev = any(takes_dev(spec.estimator) for spec in [*methods, *([] if used is None else [used])])
        task = Task(data, plan.data_home, ratio, seed, used, plan.n_splits, cache, device, predictions, needs_dev)
        yield from (Run(task, method) for method in methods)


def _check_same(wanted: list[Run], done: Mapping[Name, Record]) -> None:
    """Raise an error if a result of the same name is of another run."""
    for run in wanted:
        record = done.get(run.name)
        if record is not None and (changed := run.difference(record)):
            raise ValueError(
                f"The results hold {describe(*run.name)}, but of {changed} than today; "
                "give what changed another name, or use another file."
            )


def _todo(wanted: list[Run], done: Mapping[Name, Record], again: set[Name]) -> list[list[Run]]:
    """Group by case what has no result or is run again."""
    cases: dict[Task, list[Run]] = {}
    for run in wanted:
        if run.name not in done or run.name in again:
            cases.setdefault(run.task, []).append(run)
    return list(cases.values())


def _execute(todo: list[list[Run]], n_jobs: int, verbose: int, attempt: Callable[..., Any]) -> Iterator[Outcome]:
    """Run everything, and give each outcome as soon as it is there; ``attempt`` says what an error does."""
    possible = []
    for runs in todo:
        if problem := attempt(_embed, runs[0].task, verbose):
            yield from ((run, problem) for run in runs)
        else:
            possible.append(runs)
    if n_jobs > 1:
        yield from _in_processes(possible, n_jobs, attempt)
        return
    for runs in possible:
        for run in runs:
            yield run, attempt(run_method, run)


def _in_processes(todo: list[list[Run]], n_jobs: int, attempt: Callable[..., Any]) -> Iterator[Outcome]:
    """Run in several processes; a case's features are made by one of them before its methods start."""
    from joblib.externals.loky import ProcessPoolExecutor

    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cpu_count() // n_jobs))
    executor = ProcessPoolExecutor(
        n_jobs, initializer=_end_with, initargs=(os.getpid(),), env={"OMP_NUM_THREADS": threads}
    )
    cases, ready, running = deque(todo), deque[Run](), dict[Any, Run | list[Run]]()
    told = set[tuple[type[Warning], str]]()
    try:
        while cases or ready or running:
            while len(running) < n_jobs and (ready or cases):
                if ready:
                    run = ready.popleft()
                    running[executor.submit(_heard, attempt, run_method, run)] = run
                else:
                    runs = cases.popleft()
                    running[executor.submit(_heard, attempt, _make_features, runs[0].task)] = runs
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                ended, (result, said) = running.pop(future), future.result()
                _tell_once(said, told)
                if isinstance(ended, Run):
                    yield ended, result
                elif result is None:
                    ready.extend(ended)
                else:
                    yield from ((run, result) for run in ended)
    except BaseException as error:
        executor.shutdown(kill_workers=True)
        if isinstance(error, BrokenExecutor):
            raise BenchmarkError(
                "A process of the benchmark ended, most likely for want of memory; start again with fewer n_jobs."
            ) from error
        raise
    executor.shutdown()


def _heard(attempt: Callable[..., Any], *work: Any) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """Do some work, and give what it gives with its warnings, which its process does not show."""
    with warnings.catch_warnings(record=True) as said:
        result = attempt(*work)
    return result, [(each.category, str(each.message)) for each in said]


def _tell_once(said: list[tuple[type[Warning], str]], told: set[tuple[type[Warning], str]]) -> None:
    """Warn of what is new; names and numbers differ from run to run."""
    for category, text in said:
        kind = category, re.sub(r"(['\"]).*?\1|\d+", "", text)
        if kind not in told:
            told.add(kind)
            warn(f"{text} (Further warnings of this kind, of other runs, are not shown.)", category)


def _end_with(parent: int) -> None:
    """Let a worker end when the process that started it does, however that ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


def _embed(task: Task, verbose: int) -> None:
    task.source(verbose).prepare()


def _make_features(task: Task) -> None:
    case_features(task)  # they stay on the disk, and in this process


def _attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do some work, and give what it gives; if it fails, what went wrong."""
    try:
        return work(*arguments)
    except Exception as error:  # whatever a user's estimator raises: the other runs go on
        return f"{type(error).__name__}: {error}"


def _raise(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)
