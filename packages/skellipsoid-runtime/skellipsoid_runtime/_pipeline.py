"""``OnnxPipeline``: the predictions of an exported model, by onnxruntime."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._answers import MOST_CLASSES, actions, check_max_classes, offered, p_values
from ._containers import check_texts
from ._features import check_features, nearest
from ._folder import GRAPH, TOKENIZER, TRAINING_FEATURES, find, read_model
from ._pieces import length_sorted_pieces
from ._session import open_graph
from ._texts import SETTINGS, WINDOW, TextReader, padded

#: Padded tokens in one run of the graph: enough to keep the matrix products busy, few enough for the caches.
PIECE_TOKENS = 512
#: Outputs of every graph.
OUTPUTS = ("label", "nearest_class", "score", "margins", "features")
#: Further outputs of the graph of a model that can ask back.
TO_ASK = ("first_classes", "gap")
#: A further output since version 0.1.0: whether nothing is read of a text, which is open then.
UNREAD = "unread"
#: More than any machine has use for, and started in seconds.
MOST_THREADS = 1024


class OnnxPipeline:
    """A model that :func:`skellipsoid.export_onnx` wrote.

    Several threads can use one object.

    Parameters
    ----------
    folder : str or Path
        Folder of the exported model. Only the files that its manifest names are read, and only if their SHA-256 is
        right. Or, as a string, the name ``user/name`` of a repository on the Hugging Face hub, of which these files are
        downloaded by ``huggingface_hub`` (the extra ``[hub]``). A path that exists here goes before a repository.
    n_threads : int, default=1
        Threads of a single call, 1 to 1024. In a server with several clients, 1 is fastest.
    revision : str, default=None
        Branch, tag or commit of a repository; ``None`` is its main branch.
    token : str or bool, default=None
        Token for a private repository; ``None`` takes the one of ``hf auth login`` or of ``HF_TOKEN``. It is not kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.
    open_label_ : int, float or str
        The label that ``predict`` gives to open samples.
    offset_ : float
    class_offsets_ : ndarray of shape (n_classes,)
        The operating point: a sample is open if its score is below the sum of both for its class. It is part of the
        graph; to move it, export again.
    held_out_scores_ : ndarray of shape (n_held_out,) or None
        The scores that ``known_p_value`` compares with.
    asks : bool
        Whether the model can ask back (``predict_set``).
    takes_texts : bool
        Whether the model takes texts, or features.
    n_features_ : int
        Number of features that the graph computes of a text, or takes.
    loaded_from_ : str or None
        ``"user/name@COMMIT"`` of a model from the hub, with the hash of the commit.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, repository or revision.
    PermissionError
        If the hub refuses access.
    ConnectionError
        If a repository is not in the cache, and the hub cannot be asked.
    ImportError
        If ``huggingface_hub`` is needed and not installed.
    ValueError
        If it holds no exported model, one of another format version, or a damaged one. Or if a revision is given of a
        folder.

    Examples
    --------
    >>> from skellipsoid_runtime import OnnxPipeline
    >>> model = OnnxPipeline("my-model-onnx")  # doctest: +SKIP
    >>> model.predict(["what is my balance", "tell me a joke"])  # doctest: +SKIP
    array(['balance', '-1'], dtype='<U7')
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        n_threads: int = 1,
        revision: str | None = None,
        token: str | bool | None = None,
    ) -> None:
        is_number = isinstance(n_threads, int | np.integer) and not isinstance(n_threads, bool)
        if not is_number or not 1 <= n_threads <= MOST_THREADS:
            raise ValueError(f"n_threads={n_threads!r} is not possible; use a whole number from 1 to {MOST_THREADS}.")
        source, self.loaded_from_ = find(folder, revision, token)
        manifest, files = read_model(source)
        try:
            text = self._take(manifest)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"The manifest of the model in {str(source)!r} is damaged ({error!r:.200}); do not trust this model."
            ) from error
        with _one_sentence(source):
            self._reader = None if text is None else TextReader(files[TOKENIZER], text)
            self._training_features = None if self._training is None else self._read_features(files[TRAINING_FEATURES])
            self._session = open_graph(files[GRAPH], int(n_threads))
            self._tells_unread = UNREAD in {output.name for output in self._session.get_outputs()}
            self._check_labels()

    def _read_features(self, content: bytes) -> NDArray[Any]:
        """Read what the classifier sees of the training texts."""
        features = np.load(io.BytesIO(content), allow_pickle=False)
        n_texts = len(self._training["texts"])
        if features.dtype.kind != "f" or features.ndim != 2 or len(features) != n_texts:
            raise ValueError(f"training_features.npy holds no table of numbers with {n_texts} rows")
        if not np.isfinite(features).all():
            raise ValueError("training_features.npy holds numbers that are not finite")
        return np.asarray(features)

    def _check_labels(self) -> None:
        """Predict once, so that a graph that does not fit is found here; of two texts one is padded."""
        given = np.zeros((2, self.n_features_)) if self._reader is None else ["one text", "a text that is longer"]
        found = self._run(given, *OUTPUTS, *self._besides())
        n_classes = len(self.classes_)
        shapes = {"label": (2,), "nearest_class": (2,), "score": (2,), "margins": (2, n_classes)}
        if self.asks:
            shapes |= {"first_classes": (2, min(MOST_CLASSES, n_classes)), "gap": (2,)}
            if not ((found["first_classes"] >= 0) & (found["first_classes"] < n_classes)).all():
                raise ValueError("the graph offers a class that the manifest does not name")
        if self._tells_unread:
            shapes[UNREAD] = (2,)
        for name, shape in shapes.items():
            if found[name].shape != shape:
                raise ValueError(f"the graph gives {name} of shape {found[name].shape}, but {shape} is needed")
        if not all(0 <= label <= n_classes for label in found["label"]) or not all(
            0 <= nearest < n_classes for nearest in found["nearest_class"]
        ):
            raise ValueError("the graph predicts a class that the manifest does not name")
        if self._training_features is not None and self._training_features.shape[1] != found["features"].shape[1]:
            raise ValueError("training_features.npy has other features than the graph")

    def _take(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """Take what a manifest says, and give the settings of the tokenizer."""
        answers, scores, text = manifest["answers"], manifest["held_out_scores"], manifest["text"]
        self._labels = np.array(answers["values"], dtype=_dtype(answers["dtype"]))
        self.classes_: NDArray[Any] = self._labels[:-1]
        self.open_label_ = answers["values"][-1]
        self.offset_ = float(manifest["offset"])
        self.class_offsets_ = np.array(manifest["class_offsets"], dtype=np.float64)
        self.held_out_scores_ = None if scores is None else np.array(scores, dtype=np.float64)
        self.n_features_ = int(manifest["n_features"])
        self._rows_at_once = int(manifest["rows_at_once"])
        self._training = manifest["training_texts"]
        asking = manifest.get("asking")
        self.asks = asking is not None
        self._zones = {} if asking is None else {name: float(asking[name]) for name in ("low", "high", "gap")}
        if not np.isfinite([*self._zones.values()]).all():
            raise ValueError("zones that are no numbers")
        self.takes_texts = text is not None
        if self.class_offsets_.shape != self.classes_.shape or min(self._rows_at_once, self.n_features_) < 1:
            raise ValueError("numbers that do not fit each other")
        if self.held_out_scores_ is not None and (
            self.held_out_scores_.ndim != 1 or np.isnan(self.held_out_scores_).any()
        ):
            raise ValueError("held-out scores that are no numbers")
        return None if text is None else {name: text[name] for name in SETTINGS}

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label each sample with a known class, or with ``open_label_``.

        Parameters
        ----------
        X : sequence of str, or array-like of shape (n_samples, n_features)
            Texts, also as a table of one column; or features, for a model that takes them, also as a column of vectors.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self._labels[self._run(X, "label")["label"]])

    def predict_set(self, X: ArrayLike, *, max_classes: int = MOST_CLASSES) -> dict[str, NDArray[Any]]:
        """Give a class for each sample, a few classes to ask about, or none (open).

        Parameters
        ----------
        X : sequence of str, or array-like of shape (n_samples, n_features)
        max_classes : {1, 2, 3}, default=3
            Most classes that a question offers.

        Returns
        -------
        found : dict
            ``action`` (n_samples,), ``"answer"``, ``"ask"`` or ``"open"``; ``classes`` (n_samples, max_classes), the
            best first, empty places hold the open label. As of :func:`skellipsoid.predict_set`.

        Raises
        ------
        ValueError
            If the model cannot ask back, or ``max_classes`` is not 1, 2 or 3.
        """
        if not self.asks:
            raise ValueError(
                "The exported model has no zones to ask by; export an EllipsoidOpenSetClassifier that this version of "
                "skellipsoid fitted, with at least two different samples of some class."
            )
        max_classes = check_max_classes(max_classes)
        found = self._run(X, "label", "nearest_class", "score", *self._besides())
        action, codes = self._asked(found)
        return {"action": action, "classes": self._labels[codes[:, :max_classes]]}

    def _asked(self, found: dict[str, NDArray[Any]]) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """Actions by the zones, and the numbers of the classes that are offered, (n_samples, 3)."""
        nearest, n_classes = found["nearest_class"], len(self.classes_)
        is_open = found["label"] == n_classes  # of predict, as the graph has rounded
        of_class, unread = self.class_offsets_[nearest], found.get(UNREAD, False)
        action = actions(is_open, found["score"], found["gap"], self._zones, of_class, unread)
        return action, offered(action, found["first_classes"], nearest, n_classes)

    def score_samples(self, X: ArrayLike) -> NDArray[np.floating]:
        """Knownness of each sample: higher is more known.

        Parameters
        ----------
        X : sequence of str, or array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._run(X, "score")["score"]

    def known_p_value(self, X: ArrayLike) -> NDArray[np.float64]:
        """Conformal p-value of the hypothesis that a sample is of a known class.

        Parameters
        ----------
        X : sequence of str, or array-like of shape (n_samples, n_features)

        Returns
        -------
        p_values : ndarray of shape (n_samples,)
            Small: few known samples have such a low score.

        Raises
        ------
        ValueError
            If the model has no held-out scores to compare with.
        """
        if self.held_out_scores_ is None:
            raise ValueError(
                "The exported model has no held-out scores to compare with; export an EllipsoidOpenSetClassifier that "
                "was fitted with at least two different samples of some class."
            )
        return p_values(self.held_out_scores_, self._run(X, "score")["score"])

    def answers(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        """All outputs at once: the embedding model runs once for them.

        Parameters
        ----------
        X : sequence of str, or array-like of shape (n_samples, n_features)

        Returns
        -------
        answers : dict
            Arrays, one row for each sample: ``label`` (of ``predict``), ``nearest_class`` (never open), ``score``,
            ``margins`` (n_samples, n_classes), ``features`` (n_samples, n_features) that the classifier sees,
            ``p_value`` if the model has held-out scores, and, if it ``asks``, ``action`` (n_samples,) and
            ``candidates`` (n_samples, 3) of ``predict_set``; and ``unread`` (n_samples,), whether a text is open
            because the embedding model reads nothing of it, unless the model was exported by an older version.
        """
        found = self._run(X, *OUTPUTS, *self._besides())
        if self.asks:
            found["action"], codes = self._asked(found)
            found["candidates"] = self._labels[codes]
            del found["first_classes"], found["gap"]
        found["label"] = self._labels[found["label"]]
        found["nearest_class"] = self.classes_[found["nearest_class"]]
        if self.held_out_scores_ is not None:
            found["p_value"] = p_values(self.held_out_scores_, found["score"])
        return found

    def explain_nearest(self, X: ArrayLike, *, n_neighbors: int = 3) -> dict[str, NDArray[Any]]:
        """Name the training texts that are nearest to each text.

        Parameters
        ----------
        X : sequence of str
        n_neighbors : int, default=3

        Returns
        -------
        explanation : dict
            Arrays of shape (n_samples,), as of :func:`skellipsoid.explain`: ``text``, ``answer``, ``nearest_class``,
            ``margin``, ``neighbor_1`` …, ``neighbor_label_1`` … (if labels were kept), ``neighbor_distance_1`` ….

        Raises
        ------
        ValueError
            If the model keeps no training texts, or fewer than ``n_neighbors``.
        """
        if self._training is None or self._training_features is None:
            raise ValueError(
                "The exported model keeps no training texts; fit the encoder with keep_texts=True and export again."
            )
        kept = self._training_features
        if not isinstance(n_neighbors, int | np.integer) or not 0 <= n_neighbors <= len(kept):
            raise ValueError(
                f"n_neighbors={n_neighbors!r} is not possible; use a whole number from 0 to {len(kept)}, the number of "
                "rows to look in."
            )
        found = self.answers(X)
        columns = {"neighbor": np.array(self._training["texts"], dtype=object)}
        if (labels := self._training["labels"]) is not None:
            columns["neighbor_label"] = np.array(labels["values"], dtype=_dtype(labels["dtype"]))
        distances, rows = nearest(kept, found["features"], int(n_neighbors))
        named = {name: values[rows] for name, values in columns.items()} | {"neighbor_distance": distances}
        return {
            "text": np.array(check_texts(X), dtype=object),
            "answer": found["label"],
            "nearest_class": found["nearest_class"],
            "margin": found["score"],
            **{f"{name}_{i + 1}": values[:, i] for name, values in named.items() for i in range(int(n_neighbors))},
        }

    def _besides(self) -> tuple[str, ...]:
        """Name the outputs that not every graph has."""
        return (*(TO_ASK if self.asks else ()), *((UNREAD,) if self._tells_unread else ()))

    def _run(self, X: Any, *outputs: str) -> dict[str, NDArray[Any]]:
        """Give outputs of the graph for all samples, by name."""
        parts: list[tuple[NDArray[np.int64], list[NDArray[Any]]]] = []
        n_rows = 0
        for rows, inputs in self._pieces(X):
            parts.append((rows, self._session.run(list(outputs), inputs)))
            n_rows += len(rows)
        found = {}
        for number, name in enumerate(outputs):
            values = np.empty((n_rows, *parts[0][1][number].shape[1:]), dtype=parts[0][1][number].dtype)
            for rows, part in parts:
                values[rows] = part[number]
            found[name] = values
        return found

    def _pieces(self, X: Any) -> Iterator[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]]:
        """Rows and inputs of each run of the graph."""
        if self._reader is None:
            features = check_features(X, self.n_features_)
            for start in range(0, len(features), self._rows_at_once):
                rows = np.arange(start, min(start + self._rows_at_once, len(features)))
                yield rows, {"X": features[rows]}
            return
        texts = check_texts(X)
        for start in range(0, len(texts), WINDOW):
            tokens = self._reader.tokens(texts[start : start + WINDOW])
            lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
            for piece in length_sorted_pieces(lengths, PIECE_TOKENS, self._rows_at_once):
                yield start + piece, padded([tokens[i] for i in piece], self._reader.padding)


@contextmanager
def _one_sentence(source: Path) -> Iterator[None]:
    """Turn any error of a damaged model into one sentence with the name of its folder."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # onnxruntime and tokenizers raise many types
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"The model in {str(source)!r} cannot be used ({type(error).__name__}: {reason}); do not trust it, and "
            "export it again."
        ) from error


def _dtype(name: str) -> Any:
    return np.dtypes.StringDType() if name == "T" else np.dtype(name)
