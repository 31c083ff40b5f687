# SPDX-License-Identifier: Apache-2.0
"""Data of a training job: read from files or arrays, checked, scaled into the range of the fixed-point arithmetic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nearbank.errors import NearbankError, UserError, make_error, missing_package

#: Formats of `read_data`.
FORMATS = ("auto", "libsvm", "criteo", "npz", "parquet")
_NO_ORDER = np.zeros(0, np.int64)


class TrainingDataError(UserError, ValueError):
    """The training data cannot be used; a ValueError too, as scikit-learn expects. Exit code 1."""


def data_error(code: str, title: str, **parts: str) -> TrainingDataError:
    """Build the error for data that cannot be used.

    Parameters
    ----------
    code, title : str
        As in `nearbank.errors.ErrorReport`.
    **parts : str
        ``where``, ``expected``, ``actual``, ``fix``.

    Returns
    -------
    TrainingDataError
        Not raised yet.
    """
    return TrainingDataError(make_error("user", code, title, **parts).report)


@dataclass(frozen=True)
class DataSet:
    """Rows with labels 0 and 1; either `dense`, or the CSR arrays, or a generator's `shape`."""

    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    num_features: int = 0
    dense: np.ndarray | None = None  #: float64, (rows, features).
    offsets: np.ndarray | None = None
    indices: np.ndarray | None = None
    values: np.ndarray | None = None  #: None when all entries are one.
    generator: str = ""  #: "yfcc-like" or "criteo-like".
    shape: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple = (0, 1)
    num_bad_lines: int = 0
    name: str = ""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.shape["rows"]) if self.generator else len(self.labels)

    @property
    def is_sparse(self) -> bool:
        """Whether rows hold indices."""
        return self.generator == "criteo-like" or self.offsets is not None

    def rows(self, settings: Mapping[str, Any], order: np.ndarray | None = None):
        """Give the rows in the number type of a job.

        Parameters
        ----------
        settings : mapping
            Settings of the job, as `nearbank._sgd` takes them.
        order : ndarray of int64, optional
            Permutation or selection of the rows; not for generators.

        Returns
        -------
        nearbank._sgd.Rows
            The rows.
        """
        from nearbank import _sgd

        text = json.dumps(settings)
        if self.generator == "yfcc-like":
            return _sgd.yfcc_like(text, json.dumps(self.shape))
        if self.generator == "criteo-like":
            return _sgd.criteo_like(json.dumps(self.shape))
        labels = self.labels if order is None else self.labels[: len(order)]
        order = _NO_ORDER if order is None else np.ascontiguousarray(order, np.int64)
        if len(order) and len(order) != len(self.labels):
            return self.take(order).rows(settings)
        if self.dense is not None:
            return _sgd.dense_rows(text, self.dense, labels, self.num_features, order)
        values = np.zeros(0) if self.values is None else self.values
        return _sgd.sparse_rows(text, self.offsets, self.indices, values, labels, self.num_features, order)

    def take(self, order: np.ndarray) -> DataSet:
        """Select rows.

        Parameters
        ----------
        order : ndarray of int64
            Row numbers.

        Returns
        -------
        DataSet
            Those rows; of a generator, the first ``len(order)`` ones.
        """
        if self.generator:
            return replace(self, shape={**self.shape, "rows": len(order)})
        labels = np.ascontiguousarray(self.labels[order])
        if self.dense is not None:
            return replace(self, labels=labels, dense=np.ascontiguousarray(self.dense[order]))
        lengths = np.diff(self.offsets)[order]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        positions = np.repeat(self.offsets[order] - offsets[:-1], lengths) + np.arange(offsets[-1])
        values = None if self.values is None else self.values[positions]
        return replace(self, labels=labels, offsets=offsets, indices=self.indices[positions], values=values)

    def max_row_entries(self) -> int:
        """Give the largest number of entries of a row; the number of features when dense."""
        if self.generator == "criteo-like":
            return 39
        if not self.is_sparse:
            return self.num_features
        return int(np.diff(self.offsets).max(initial=0))


def binary_labels(labels: np.ndarray, classes: tuple | None = None, where: str = "") -> tuple[np.ndarray, tuple]:
    """Map labels to 0 and 1.

    Parameters
    ----------
    labels : ndarray
        Numbers or strings.
    classes : tuple, optional
        The two classes, when known.
    where : str, default ""
        Where the labels come from, for errors.

    Returns
    -------
    (ndarray of uint8, tuple)
        Labels, and the two classes in ascending order.

    Raises
    ------
    TrainingDataError
        NB0707 when there are not exactly two classes.
    """
    found = np.unique(labels)
    known = found if classes is None else np.asarray(classes)
    if len(known) == 2 and np.isin(found, known).all():
        return np.ascontiguousarray(labels == known[1]).astype(np.uint8), tuple(known.tolist())
    shown = ", ".join(repr(value) for value in found.tolist()[:5])
    if len(found) > 2 and classes is None:
        fix = "wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
    else:
        fix = "give rows of both classes"
    raise data_error(
        "NB0707",
        "labels are not those of two classes",
        where=where,
        expected="exactly 2 classes" if classes is None else f"labels among {known.tolist()}",
        actual=f"{len(found)} class{'es' if len(found) != 1 else ''}: {shown}" if len(found) else "no rows",
        fix=fix,
    )


def require_finite(values: np.ndarray | None, where: str = "") -> None:
    """Refuse NaN and infinity.

    Parameters
    ----------
    values : ndarray or None
        Features.
    where : str, default ""
        Where they come from.

    Raises
    ------
    TrainingDataError
        NB0708.
    """
    if values is not None and not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise data_error(
            "NB0708",
            "feature is NaN or infinite",
            where=where,
            expected="finite numbers",
            actual=f"first at row or entry {row}",
            fix="impute or drop such rows first",
        )


def _unreadable(path: Path, cause: Exception) -> NearbankError:
    return data_error(
        "NB0703",
        "data file cannot be read",
        where=str(path),
        expected="a readable file",
        actual=str(cause),
        fix="check the path and its permissions",
    )


def from_arrays(features: Any, labels: np.ndarray, name: str = "", classes: tuple | None = None) -> DataSet:
    """Make a data set of arrays.

    Parameters
    ----------
    features : ndarray or SciPy sparse matrix, shape (rows, features)
        Finite numbers.
    labels : ndarray, shape (rows,)
        Two classes.
    name : str, default ""
        For messages.
    classes : tuple, optional
        The classes, when known.

    Returns
    -------
    DataSet
        float64 features; sparse when `features` is.
    """
    binary, classes = binary_labels(np.asarray(labels), classes, name)
    if hasattr(features, "tocsr"):
        csr = features.tocsr()
        require_finite(csr.data, name)
        values = np.ascontiguousarray(csr.data, np.float64)
        keep = None if np.all(values == 1.0) else values
        return DataSet(
            binary,
            csr.shape[1],
            offsets=np.ascontiguousarray(csr.indptr, np.int64),
            indices=np.ascontiguousarray(csr.indices, np.uint32),
            values=keep,
            classes=classes,
            name=name,
        )
    dense = np.ascontiguousarray(features, np.float64)
    require_finite(dense, name)
    return DataSet(binary, dense.shape[1], dense=dense, classes=classes, name=name)


def _read_npz(path: Path, classes: tuple | None) -> DataSet:
    with np.load(path, allow_pickle=False) as file:
        if "X" in file and "y" in file:
            return from_arrays(file["X"], file["y"], str(path), classes)
        raise KeyError("no arrays X and y")


def _read_parquet(path: Path, classes: tuple | None) -> DataSet:
    try:
        import pyarrow.parquet as parquet
    except ImportError as cause:
        raise missing_package("pyarrow", ", to read Parquet", str(path)) from cause
    table = parquet.read_table(path)
    names = table.column_names
    label = next((name for name in ("label", "y", "target") if name in names), names[0])
    columns = [table.column(name).to_numpy() for name in names if name != label]
    return from_arrays(np.column_stack(columns), table.column(label).to_numpy(), str(path), classes)


def read_data(
    path: str,
    file_format: str = "auto",
    on_bad_line: str = "error",
    hash_bits: int = 20,
    num_features: int | None = None,
    classes: tuple | None = None,
    byte_range: tuple[int, int] = (0, -1),
) -> DataSet:
    """Read a data file, or describe a generated one.

    Parameters
    ----------
    path : str
        A file, or ``yfcc-like:ROWS``, ``criteo-like:ROWS``, with ``key=value`` after commas: ``firstRow``,
        ``features``, ``separability``, ``flips``, ``signal``, ``seed``.
    file_format : {"auto", "libsvm", "criteo", "npz", "parquet"}, default "auto"
        ``auto`` goes by the ending: .npz, .parquet, .tsv (Criteo), anything else LIBSVM.
    on_bad_line : {"error", "skip"}, default "error"
        What a malformed line does.
    hash_bits : int, default 20
        Criteo: features are hashed to ``2**hash_bits``.
    num_features : int, optional
        Width of sparse rows; by default the largest index.
    classes : tuple, optional
        The two classes, when known from the training data.
    byte_range : (int, int), default (0, -1)
        Lines that begin in it are read; text formats only.

    Returns
    -------
    DataSet
        The data.

    Raises
    ------
    TrainingDataError
        NB0703, NB0704, NB0707, NB0708.
    """
    if path.startswith(("yfcc-like:", "criteo-like:")):
        kind, _, words = path.partition(":")
        rows, *pairs = words.split(",")
        try:
            shape: dict[str, Any] = {"rows": int(rows)}
            for pair in pairs:
                key, _, value = pair.partition("=")
                shape[key] = int(value) if key in ("firstRow", "features", "seed") else float(value)
        except ValueError as cause:
            raise _unreadable(Path(path), cause) from cause
        width = shape.get("features", 4096 if kind == "yfcc-like" else 1000000)
        return DataSet(num_features=width, generator=kind, shape=shape, name=path)
    from nearbank import _sgd

    file = Path(path)
    if file_format == "auto":
        endings = {".npz": "npz", ".parquet": "parquet", ".tsv": "criteo"}
        file_format = endings.get(file.suffix, "libsvm")
    try:
        if file.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        if file_format == "npz":
            return _read_npz(file, classes)
        if file_format == "parquet":
            return _read_parquet(file, classes)
    except (OSError, KeyError, ValueError) as cause:
        if isinstance(cause, NearbankError):
            raise
        raise _unreadable(file, cause) from cause
    read = _sgd.read_criteo if file_format == "criteo" else _sgd.read_libsvm
    parsed = read(path, on_bad_line == "skip", byte_range[0], byte_range[1], hash_bits)
    labels, classes = binary_labels(parsed["labels"], classes, path)
    width = max(int(parsed["num_features"]), num_features or 0)
    return DataSet(
        labels,
        width,
        offsets=parsed["offsets"],
        indices=parsed["indices"],
        values=parsed["values"] if len(parsed["values"]) else None,
        classes=classes,
        num_bad_lines=int(parsed["num_bad_lines"]),
        name=path,
    )
