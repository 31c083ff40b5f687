# SPDX-License-Identifier: Apache-2.0
"""Tests of the scikit-learn estimators: conformance, accuracy, refusals, continued training."""

import pickle
import time

import numpy as np
import pytest

pytest.importorskip("nearbank._sgd")
pytest.importorskip("sklearn")

from nearbank import PimLinearSVC, PimLogisticRegression  # noqa: E402
from nearbank.cli import main  # noqa: E402
from nearbank.errors import UserError  # noqa: E402
from scipy import sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_breast_cancer, make_classification  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

ESTIMATORS = [PimLogisticRegression, PimLinearSVC]


@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("algorithm", ["ma-sgd", "ga-sgd", "admm"])
@pytest.mark.parametrize("arithmetic", ["q31", "f32"])
def test_breast_cancer_unscaled_reaches_95_percent(cancer, estimator, algorithm, arithmetic):
    folds = KFold(5, shuffle=True, random_state=1)
    model = estimator(algorithm=algorithm, arithmetic=arithmetic, random_state=0)
    assert cross_val_score(model, *cancer, cv=folds).mean() >= 0.95


def test_defaults_take_less_than_a_second(cancer):
    PimLogisticRegression().fit(*cancer)  # Warms up imports.
    start = time.perf_counter()
    PimLogisticRegression().fit(*cancer)
    assert time.perf_counter() - start < 1.0


def test_string_labels_probabilities_and_history(cancer):
    X, y = cancer
    names = np.array(["malignant", "benign"])[y]
    model = PimLogisticRegression(random_state=0, max_iter=20).fit(X, names)
    assert set(model.predict(X)) == {"malignant", "benign"}
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()
    assert len(model.history_) == 20
    entry = model.history_[-1]
    assert {"epoch", "round", "loss", "accuracy", "auc", "seconds"} <= set(entry)
    assert entry["seconds"]["dpuCompute"] > 0
    assert model.history_[0]["loss"] > entry["loss"]


def test_the_same_state_gives_the_same_model_on_any_number_of_threads(cancer):
    one = PimLogisticRegression(random_state=3, n_jobs=1).fit(*cancer)
    two = PimLogisticRegression(random_state=3, n_jobs=2).fit(*cancer)
    assert (one.coef_ == two.coef_).all()
    assert one.intercept_ == two.intercept_


def test_results_name_their_engine_and_where_times_come_from(cancer):
    X, y = cancer
    models = {
        words: PimLogisticRegression(
            n_dpus=8, eta0=1.0, max_iter=2, random_state=0, simulate=words[0], times=words[1]
        ).fit(X, y)
        for words in (("twin", "modelled"), ("twin", "sampled"), ("exact", "modelled"))
    }
    twin, sampled, exact = models.values()
    assert (twin.coef_ == exact.coef_).all() and (twin.coef_ == sampled.coef_).all()
    assert [model.engine_ for model in models.values()] == ["twin", "twin", "exact"]
    assert twin.times_from_.startswith("closed forms")
    assert "sampled rounds on the engine exact" in sampled.times_from_
    assert "every round on the engine exact" in exact.times_from_
    busy = [sum(entry["seconds"]["dpuCompute"] for entry in model.history_) for model in models.values()]
    assert busy[0] == pytest.approx(busy[2], rel=0.3)  # TM-3 and TM-4 on 30 features.
    assert busy[1] == pytest.approx(busy[2], rel=0.05)


def test_pickle_clone_grid_search_and_pipeline(cancer):
    X, y = cancer
    model = PimLinearSVC(random_state=0, max_iter=20).fit(X, y)
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    assert clone(model).get_params() == model.get_params()
    grid = GridSearchCV(PimLogisticRegression(random_state=0, max_iter=10), {"n_dpus": [4, 16]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.9
    pipeline = make_pipeline(StandardScaler(), PimLogisticRegression(random_state=0, max_iter=10)).fit(X, y)
    assert pipeline.score(X, y) > 0.95


def test_balanced_classes_find_more_positives():
    X, y = make_classification(2000, 20, weights=[0.95], class_sep=0.5, random_state=1)
    plain = PimLogisticRegression(random_state=0, max_iter=20).fit(X, y)
    balanced = PimLogisticRegression(random_state=0, max_iter=20, class_weight="balanced").fit(X, y)
    recall = [(model.predict(X)[y == 1] == 1).mean() for model in (plain, balanced)]
    assert recall[1] > recall[0] + 0.2


def test_sparse_and_dense_rows_give_close_models():
    X, y = make_classification(600, 15, random_state=2)
    X = np.where(np.abs(X) > 1, X, 0.0)
    dense = PimLogisticRegression(arithmetic="f32", eta0=1.0, shuffle=False, scale=None, max_iter=5).fit(X / 8, y)
    thin = sparse.csr_array(X / 8)
    assert np.allclose(
        PimLogisticRegression(arithmetic="f32", eta0=1.0, shuffle=False, scale=None, max_iter=5).fit(thin, y).coef_,
        dense.coef_,
        atol=1e-4,  # float32 sums in another order
    )


def test_three_classes_name_one_vs_rest_and_it_works():
    X, y = make_classification(300, 10, n_classes=3, n_informative=6, random_state=0)
    with pytest.raises(ValueError, match="OneVsRestClassifier") as caught:
        PimLinearSVC().fit(X, y)
    assert caught.value.report.code == "NB0707"
    assert OneVsRestClassifier(PimLogisticRegression(random_state=0)).fit(X, y).score(X, y) > 0.6


def test_out_of_range_features_are_refused_without_scaling():
    with pytest.raises(UserError, match="NB0702") as caught:
        PimLogisticRegression(scale=None, eta0=1.0).fit([[0.0], [5.0]], [0, 1])
    assert str(caught.value) == (
        "error[NB0702]: feature beyond the fixed-point range\n"
        "  where:    row 1\n"
        "  expected: values from -1 to 1\n"
        "  actual:   5\n"
        '  fix:      scale the features (scale="minmax", --scale minmax), or use arithmetic="f32"\n'
        "  more:     nearbank explain NB0702"
    )


def test_more_dpus_than_the_machine_and_rows_beyond_mram_are_refused():
    X = np.zeros((70, 3))
    X[::2] = 1
    y = np.arange(70) % 2
    with pytest.raises(UserError, match="NB0705") as caught:
        PimLogisticRegression(machine="upmem-64", n_dpus=65, eta0=1.0).fit(X, y)
    assert "at most 64 DPUs" in str(caught.value)
    wide = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 20_000_000])), shape=(2, 20_000_001))
    with pytest.raises(UserError, match="NB0705") as caught:
        PimLogisticRegression(n_dpus=2, eta0=1.0).fit(wide, [0, 1])
    assert "the model alone is too large" in str(caught.value)


def test_rows_beyond_mram_name_the_dpus_that_would_do(tmp_path, capsys):
    words = ["--dpus", "8", "--eta0", "1", "--machine", "upmem-64", "--out", str(tmp_path)]
    assert main(["train", "--data", "yfcc-like:80000", *words]) == 1
    printed = capsys.readouterr().err
    # 64 MiB hold 4,090 rows of 16 KB beside the model: 20 DPUs.
    assert "error[NB0705]" in printed and "10000 rows of 4096 entries and the model" in printed
    assert "--dpus 20 or more" in printed


def test_partial_fit_follows_a_drift():
    random = np.random.default_rng(0)
    before, after = random.normal(size=20), random.normal(size=20)

    def batch(direction, rows=500):
        X = random.normal(size=(rows, 20))
        return X, (X @ direction + 0.3 * random.normal(size=rows) > 0).astype(int)

    test = batch(after, 4000)
    stream = PimLogisticRegression(n_dpus=16, window=2000, random_state=0)
    for _ in range(6):
        stream.partial_fit(*batch(before), classes=[0, 1])
    late = [batch(after) for _ in range(8)]
    assert stream.score(*test) < 0.8
    for rows in late:
        stream.partial_fit(*rows)
    X, y = (np.concatenate(parts) for parts in zip(*late, strict=True))
    full = PimLogisticRegression(n_dpus=16, random_state=0).fit(X, y)
    # docs/guide/sgd.md: within 1 % of a full training on the new distribution after 8 batches.
    assert stream.score(*test) >= full.score(*test) - 0.01
