# SPDX-License-Identifier: Apache-2.0
"""scikit-learn estimators that train linear models over simulated DPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nearbank.errors import missing_package

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as cause:
    raise missing_package("scikit-learn", ", for the estimators", "nearbank.estimators") from cause

from nearbank.sgd_data import DataSet, data_error, from_arrays
from nearbank.sgd_options import JobOptions
from nearbank.sgd_scaling import make_scaling
from nearbank.sgd_times import times_from
from nearbank.sgd_training import TrainedJob, run_epochs, start_job


class _PimLinearClassifier(ClassifierMixin, BaseEstimator):
    """What both estimators share."""

    _model = "lr"

    def __init__(
        self,
        algorithm="ma-sgd",
        machine="upmem-2048",
        n_dpus=64,
        n_tasklets=16,
        arithmetic="q31",
        compat="default",
        sync="server",
        batch_size=8,
        max_iter=100,
        eta0="auto",
        alpha=1e-4,
        rho=2.0**-10,
        average_every=1,
        staleness=0,
        max_weight=64.0,
        class_weight=None,
        scale="standard",
        shuffle=True,
        window=65536,
        simulate="twin",
        times="modelled",
        n_jobs=None,
        random_state=None,
    ):
        self.algorithm = algorithm
        self.machine = machine
        self.n_dpus = n_dpus
        self.n_tasklets = n_tasklets
        self.arithmetic = arithmetic
        self.compat = compat
        self.sync = sync
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.eta0 = eta0
        self.alpha = alpha
        self.rho = rho
        self.average_every = average_every
        self.staleness = staleness
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.scale = scale
        self.shuffle = shuffle
        self.window = window
        self.simulate = simulate
        self.times = times
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def _options(self, rows: int, epochs: int | None = None) -> JobOptions:
        return JobOptions(
            algorithm=self.algorithm,
            model=self._model,
            arithmetic=self.arithmetic,
            compat=self.compat,
            sync=self.sync,
            machine=self.machine,
            # A DPU without a row would only hold the average back.
            n_dpus=min(self.n_dpus, rows),
            n_tasklets=self.n_tasklets,
            batch_size=self.batch_size,
            max_iter=self.max_iter if epochs is None else epochs,
            eta0=self.eta0,
            alpha=self.alpha,
            rho=self.rho,
            average_every=self.average_every,
            staleness=self.staleness,
            max_weight=self.max_weight,
            class_weight=self.class_weight,
            engine=self.simulate,
            times=self.times,
            threads=0 if self.n_jobs in (None, -1) else self.n_jobs,
        )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check(self, X, y, reset: bool):
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, reset=reset)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}")
        if kind == "multiclass" and len(np.unique(y)) > 2 and reset:
            raise data_error(
                "NB0707",
                "labels are not those of two classes",
                expected=f"Only binary classification is supported. The type of the target is {kind}.",
                actual=f"{len(np.unique(y))} classes",
                fix="wrap the estimator in sklearn.multiclass.OneVsRestClassifier",
            )
        return X, y

    def _data(self, X, y) -> DataSet:
        return from_arrays(X, y, type(self).__name__, tuple(self.classes_.tolist()))

    def _set_classes(self, y) -> None:
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise data_error(
                "NB0707",
                "labels are not those of two classes",
                expected="exactly 2 classes",
                actual=f"{len(self.classes_)} class",
                fix="give rows of both classes",
            )

    def fit(self, X, y):
        """Train from scratch.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Finite features. They are mapped into [-1, 1] first, as `scale` says.
        y : array-like, shape (n_samples,)
            Two classes; numbers or strings.

        Returns
        -------
        self
            Fitted: ``coef_``, ``intercept_``, ``classes_``, ``history_``, ``eta0_``, ``n_dpus_``.

        Raises
        ------
        TrainingDataError
            NB0702, NB0707, NB0708; a ValueError too.
        UserError
            NB0101, NB0208, NB0701, NB0705.
        """
        X, y = self._check(X, y, reset=True)
        self._set_classes(y)
        data = self._data(X, y)
        self._scaling = make_scaling(data, self.scale, self.compat == "pim-opt")
        scaled = self._scaling.apply(data)
        job = start_job(scaled, self._options(data.num_rows), self._seed(), self.shuffle)
        run_epochs(job, self.max_iter, train_rows=scaled.rows(job.settings))
        self._window_rows = None
        self._take(job)
        self.history_ = job.history
        self.n_iter_ = self.max_iter
        return self

    def partial_fit(self, X, y, classes=None):
        """Go on training with more rows: one epoch over a bounded window of the latest rows.

        Parameters
        ----------
        X, y : array-like
            New rows, as in `fit`.
        classes : array-like, optional
            The two classes; needed in the first call unless `y` holds both.

        Returns
        -------
        self
            Fitted further. The DPUs' memory keeps the latest ``window`` rows; older ones are forgotten.
        """
        is_first = not hasattr(self, "coef_")
        X, y = self._check(X, y, reset=is_first)
        if is_first:
            self._set_classes(y if classes is None else np.asarray(classes))
        data = self._data(X, y)
        window = data if getattr(self, "_window_rows", None) is None else _joined(self._window_rows, data)
        if window.num_rows > self.window:
            window = window.take(np.arange(window.num_rows - self.window, window.num_rows, dtype=np.int64))
        self._window_rows = window
        raw = None if is_first else np.append(self.coef_[0], self.intercept_[0])
        # The scale follows the window, the model goes with it.
        self._scaling = make_scaling(window, self.scale, self.compat == "pim-opt")
        scaled = self._scaling.apply(window)
        initial = None if raw is None else self._scaling.model_to_scaled(raw)
        rate = None if is_first or self.eta0 != "auto" else self.eta0_
        job = start_job(scaled, self._options(window.num_rows), self._seed(), self.shuffle, initial=initial, rate=rate)
        run_epochs(job, 1, train_rows=scaled.rows(job.settings))
        self._take(job)
        self.history_ = [*getattr(self, "history_", []), *job.history]
        self.n_iter_ = len(self.history_)
        return self

    def _take(self, job: TrainedJob) -> None:
        raw = self._scaling.model_to_raw(job.model)
        self.coef_ = raw[np.newaxis, :-1]
        self.intercept_ = raw[-1:]
        self.eta0_ = job.rate
        self.n_dpus_ = job.options.n_dpus
        self.traffic_ = job.traffic()
        self.engine_ = job.options.engine
        self.times_from_ = times_from(job)

    def decision_function(self, X):
        """Give the signed distance from the boundary, in units of the margin.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples,)
            Positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_[0]).ravel() + self.intercept_[0]

    def predict(self, X):
        """Predict classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples,)
            Of ``classes_``.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]


class PimLogisticRegression(_PimLinearClassifier):
    """Logistic regression trained over simulated DPUs.

    Parameters
    ----------
    algorithm : {"ma-sgd", "ga-sgd", "admm"}, default "ma-sgd"
        Averages models, gradients, or agrees by ADMM.
    machine : str, default "upmem-2048"
        Machine whose times `history_` gives.
    n_dpus : int, default 64
        DPUs that share the rows; never more than there are rows.
    n_tasklets : int, default 16
        Threads of each DPU, at most 24; changes times, not results.
    arithmetic : {"q31", "f32"}, default "q31"
        32-bit fixed point or float32.
    compat : {"default", "pim-opt"}, default "default"
        ``"pim-opt"`` reproduces PIM-Opt's published arithmetic to the bit.
    sync : {"server", "ring", "gossip", "in-network", "shared-chip", "shared-rank"}, default "server"
        Who combines models; all but the host need a machine with links.
    batch_size : int, default 8
        Rows of one step on one DPU; a power of two in q31.
    max_iter : int, default 100
        Epochs (``--epochs``).
    eta0 : "auto" or float, default "auto"
        Learning rate, rounded to a power of two in q31; ``"auto"`` tries 19 of them on held-out rows.
    alpha : float, default 1e-4
        Strength of the L2 term (ADMM with logistic loss: L1).
    rho : float, default 2**-10
        Penalty of ADMM.
    average_every : int, default 1
        Batches between averages of ma-sgd; 0: once an epoch.
    staleness : int, default 0
        Rounds by which a DPU's model may be behind.
    max_weight : float, default 64.0
        Largest weight in q31, for features in [-1, 1]; rounded up to a power of two.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes.
    scale : {"standard", "minmax", None}, default "standard"
        How dense features come into [-1, 1]: four standard deviations about the mean, or their range.
    shuffle : bool, default True
        Permute the rows before they are dealt to the DPUs.
    window : int, default 65536
        Rows that `partial_fit` keeps.
    simulate : {"twin", "exact", "fast"}, default "twin"
        What computes: natively, with the bits of the DPUs, or simulated DPUs.
    times : {"modelled", "sampled", "auto"}, default "modelled"
        Where the twin's times of DPU work come from: closed forms, or rounds of a DPU that are simulated; ``"auto"``
        samples where DPU programs can be compiled.
    n_jobs : int or None, default None
        Threads of this host; the result does not depend on it.
    random_state : int, RandomState or None, default None
        Of shuffle and rate search.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features)
        Coefficients for the features as given.
    intercept_ : ndarray, shape (1,)
        Intercept.
    classes_ : ndarray, shape (2,)
        Classes.
    history_ : list of dict
        Per epoch (with ADMM a round): ``epoch``, ``round``, ``loss``, ``accuracy``, ``auc``, ``seconds`` by kind,
        ``mramWramBytes`` and ``dispersion``.
    engine_ : str
        What computed.
    times_from_ : str
        Where ``seconds`` come from: which of them are simulated, which modelled.
    eta0_ : float
        Learning rate that was used.
    n_dpus_ : int
        DPUs that were used.
    traffic_ : dict
        Bytes moved between host and DPUs (counted), and their closed forms.

    Examples
    --------
    >>> from nearbank import PimLogisticRegression
    >>> model = PimLogisticRegression(n_dpus=4, eta0=1.0, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]).predict([[0.5], [2.5]]).tolist()
    ['no', 'yes']
    """

    _model = "lr"

    def predict_proba(self, X):
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples, 2)
            Of ``classes_``.
        """
        positive = 1.0 / (1.0 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.column_stack([1.0 - positive, positive])

    def predict_log_proba(self, X):
        """Predict the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples, 2)
            Of ``classes_``.
        """
        return np.log(self.predict_proba(X))


class PimLinearSVC(_PimLinearClassifier):
    """Linear support vector machine (hinge loss) trained over simulated DPUs.

    Parameters and attributes as in `PimLogisticRegression`; ADMM's regulariser is L2. There is no `predict_proba`.

    Examples
    --------
    >>> from nearbank import PimLinearSVC
    >>> model = PimLinearSVC(n_dpus=4, eta0=0.5, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5], [2.5]]).tolist()
    [0, 1]
    """

    _model = "svm"


def _joined(first: DataSet, second: DataSet) -> DataSet:
    labels = np.concatenate([first.labels, second.labels])
    if first.dense is not None:
        return replace(first, labels=labels, dense=np.concatenate([first.dense, second.dense]))
    has_values = first.values is not None or second.values is not None
    parts = [np.ones(len(part.indices)) if part.values is None else part.values for part in (first, second)]
    return replace(
        first,
        labels=labels,
        offsets=np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]]),
        indices=np.concatenate([first.indices, second.indices]),
        values=np.concatenate(parts) if has_values else None,
    )


__all__ = ["PimLinearSVC", "PimLogisticRegression"]
