# SPDX-License-Identifier: Apache-2.0
"""Builds and runs PIM-Opt's 24 programs of a checkout under Nearbank and compares models with an independent training.

python bench/upmem_pim_opt.py PATH/TO/PIM-Opt --dpus 4
The checkout is copied. Its sizes are those of hundreds of gigabytes and its number of tasklets is fixed: only numbers
of rows, batch sizes, epochs and the numbers of DPUs that sizes depend on are changed in the copy. Rows are generated
in its format. The other training is nearbank's native one (compat="pim-opt"), which shares no code with the programs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import upmem_checkout
from nearbank import PimLinearSVC, PimLogisticRegression
from upmem_checkout import Outcome

BATCH, BATCHES, TESTS = 8, 2, 64
#: Criteo's models have a million weights.
EPOCHS = {"YFCC100M-HNfc6": 2, "Criteo": 1}
#: Exponents of learning rate, regulariser and ADMM's penalty by program (host/app.c).
EXPONENT = re.compile(r"array_(learning_rate|reg_term|reg_term_alpha)\[\] = \{(\d+)\}")


def generate(folder: Path, data: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Write training and test rows; return the former as the program reads them."""
    choice = np.random.default_rng(5)
    count = rows + TESTS
    labels = choice.integers(0, 2, count)
    if data == "Criteo":
        features = choice.integers(0, 1_000_000, (count, 39))
    else:
        features = choice.integers(0, 2**31, (count, 4096)) // (2 - labels[:, None])
    lines = [" ".join(map(str, [label, *row])) + "\n" for label, row in zip(labels, features, strict=True)]
    reader = next(folder.glob("host_utils/read_data_utils.c")).read_text()
    for name in set(re.findall(r'"%s/([^"]+\.txt)"', reader)):
        training = "train" in name
        (folder / name).write_text("".join(lines[:rows] if training else lines[rows:]))
    return features[:rows], labels[:rows]


def shrink(folder: Path, dpus: int, rows: int, epochs: int) -> dict[str, int]:
    """Change the program's sizes; return its exponents."""
    source = folder / "host" / "app.c"
    text = source.read_text()
    exponents = {key: int(value) for key, value in EXPONENT.findall(text)}
    batch = BATCH * dpus if "GA-SGD" in str(folder) else BATCH
    text = re.sub(r"(array_b_size_frac\[\] = )\{[^}]*\}", rf"\1{{{batch}}}", text)
    text = re.sub(r"(array_epochs\[\] = )\{[^}]*\}", rf"\1{{{epochs}}}", text)
    text = re.sub(r"(\bm_size = \(uint64_t\) )\([1-9]\d+\)", rf"\1({rows})", text)
    text = re.sub(r"(number_of_test_samples = \(uint64_t\) )\([1-9]\d+\)", rf"\1({TESTS})", text)
    largest = "256" if "NR_DPUS == 256" in text else "2048"
    text = re.sub(
        rf"(NR_DPUS == {largest}\)? \{{\s*K_shift = \(uint32_t\) )\(\d+\)", rf"\1({dpus.bit_length() - 1})", text
    )
    source.write_text(text.replace(f"NR_DPUS == {largest}", f"NR_DPUS == {dpus}"))
    reader = folder / "host_utils" / "read_data_utils.c"
    reader.write_text(reader.read_text().replace(f"NR_DPUS == {largest}", f"NR_DPUS == {dpus}"))
    for name in set(re.findall(r'sprintf\(filename_experiment_dpu, "%s/(.*?)/[^/"]*"', text)):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return exponents


def expected(name: str, dpus: int, exponents: dict[str, int], rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Train natively; return bias and weights."""
    kind = PimLogisticRegression if name.endswith("LR") else PimLinearSVC
    algorithm = {"MA-SGD": "ma-sgd", "GA-SGD": "ga-sgd", "ADMM": "admm"}[name.split("/")[0]]
    # ADMM's penalty is what the programs call the regulariser, and its regulariser what they call alpha.
    penalty, regulariser = exponents["reg_term"], exponents.get("reg_term_alpha", exponents["reg_term"])
    model = kind(
        algorithm=algorithm,
        n_dpus=dpus,
        batch_size=BATCH,
        eta0=2.0 ** -exponents["learning_rate"],
        alpha=2.0**-regulariser,
        rho=2.0**-penalty,
        max_iter=EPOCHS["YFCC100M-HNfc6"],
        compat="pim-opt",
        scale=None,
        shuffle=False,
    )
    model.fit(rows / 2.0**31, labels)
    return np.concatenate([model.intercept_, model.coef_[0]])


def models(folder: Path) -> list[np.ndarray]:
    """Read the models that the program wrote, one an epoch."""
    texts = [path.read_text() for path in folder.glob("results_UPMEM/**/*.txt")]
    found = re.findall(r"Epoch \d+\. Model W[^\n]*\.\n([-0-9.,]+)\n", "".join(texts))
    return [np.array([float(value) for value in line.split(",")]) for line in found]


def run(root: Path, name: str, dpus: int, seconds: int) -> Outcome:
    """Build and run one program, and judge its model."""
    folder = root / name
    rows = BATCH * BATCHES * dpus
    data = next(key for key in EPOCHS if key in name)
    features, labels = generate(folder, data, rows)
    exponents = shrink(folder, dpus, rows, EPOCHS[data])
    paths = [f"SOURCE_DIR={folder}", f"DEST_DIR={folder}"]
    if failure := upmem_checkout.build(folder, f"NR_DPUS={dpus}", "SCALING=0", "AE=0", *paths):
        return failure
    changes = {"NEARBANK_UPMEM_CHECK": str(folder / "check.json")} if data == "Criteo" else {}
    found = upmem_checkout.run(folder, ["./bin/host_code"], seconds, **changes)
    codes = sorted(set(re.findall(r"error\[(NB\d+)\]", found.text)))
    if data == "Criteo" and codes and found.state == "failed":
        # Its X is read from addresses that DMA does not take: no independent result exists.
        found.state, found.why = "ran", f"wrong itself, as the checker says: {', '.join(codes)}"
    if found.state != "passed" or "benchmark" in name:
        return found
    written = models(folder)
    if len(written) < EPOCHS[data]:
        found.state, found.why = "failed", f"{len(written)} models of {EPOCHS[data]}"
    else:
        target = expected(name, dpus, exponents, features, labels)
        # Nine decimals of single precision.
        wrong = np.abs(written[-1] - target) > 1e-9 + 1e-7 * np.abs(target)
        if wrong.any():
            found.state = "failed"
        found.why = f"{np.count_nonzero(~wrong)} of {wrong.size} weights are those of the native training"
    return found


def main() -> int:
    chosen = upmem_checkout.options(__doc__.splitlines()[0], "4", "16")
    with upmem_checkout.copied(chosen.checkout / "upmem_ml_coding" / "UPMEM") as root:
        names = [str(makefile.parent.relative_to(root)) for makefile in sorted(root.glob("*/*/*/Makefile"))]
        return upmem_checkout.table(names, chosen, lambda name, dpus, _: run(root, name, dpus, chosen.timeout))


if __name__ == "__main__":
    sys.exit(main())
