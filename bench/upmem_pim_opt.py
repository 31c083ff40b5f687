# SPDX-License-Identifier: Apache-2.0
"""Builds and runs PIM-Opt's 24 programs of a checkout under Nearbank and compares models with an independent training.

python bench/upmem_pim_opt.py PATH/TO/PIM-Opt --dpus 4
The checkout is copied. Its sizes are those of hundreds of gigabytes and its number of tasklets is fixed: only numbers
of rows, batch sizes, epochs and the numbers of DPUs that sizes depend on are changed in the copy. Rows are generated
in its format. The other training is nearbank's native one (compat="pim-opt"), which shares no code with the programs.
Criteo's programs read rows at addresses that DMA does not take: as they are they run under the checker, which has to
say so; then each runs with that one read replaced by mram_read_unaligned, and is compared.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import upmem_checkout
from nearbank import PimLinearSVC, PimLogisticRegression
from scipy import sparse
from upmem_checkout import Outcome

BATCH, BATCHES, TESTS = 8, 2, 64
#: Criteo's models have a million weights.
EPOCHS = {"YFCC100M-HNfc6": 2, "Criteo": 1}
#: The checker takes a minute on as many.
CHECKED_DPUS = 4
#: Exponents of learning rate, regulariser and ADMM's penalty by program (host/app.c).
EXPONENT = re.compile(r"array_(learning_rate|reg_term|reg_term_alpha)\[\] = \{(\d+)\}")


def generate(folder: Path, data: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Write training and test rows; return the former as the program reads them."""
    choice = np.random.default_rng(5)
    count = rows + TESTS
    labels = choice.integers(0, 2, count)
    if data == "Criteo":
        # Values of different fields have different numbers, as tasklets would race for a row's equal ones.
        features = choice.integers(0, 25_641, (count, 39)) + 25_641 * np.arange(39)
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


def repair(folder: Path) -> None:
    """Read a Criteo row's part at the address that is meant."""
    source = folder / "dpu" / "task.c"
    text, count = re.subn(
        r"mram_read\(\(__mram_ptr void const\*\) \(mram_temp_addr_X\), cache_X, number_of_bytes_to_read_X\);",
        "cache_X = mram_read_unaligned((__mram_ptr void *)mram_temp_addr_X, buffer_X, number_of_bytes_to_read_X);",
        source.read_text(),
    )
    text, buffers = re.subn(r"U \*cache_X = \(U \*\) mem_alloc\(16\);", "U *cache_X, *buffer_X = mem_alloc(24);", text)
    if (count, buffers) != (1, 1):
        raise SystemExit(f"{source}: {count} reads of X and {buffers} buffers for it, where one each was expected")
    source.write_text("#include <mram_unaligned.h>\n" + text)
    # One program has an exponential of half as many table entries as all others; the native training has theirs.
    for header in folder.glob("minimal/*/*/lut_exp*.h"):
        header.write_text(re.sub(r"(#define EXP_PRECISION) 19\b", r"\1 20", header.read_text()))


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
        max_iter=EPOCHS[next(key for key in EPOCHS if key in name)],
        compat="pim-opt",
        scale=None,
        shuffle=False,
    )
    if "Criteo" in name:
        starts = np.arange(0, rows.size + 1, rows.shape[1])
        rows = sparse.csr_array((np.ones(rows.size), rows.ravel(), starts), shape=(len(rows), 1_000_000))
    else:
        rows = rows / 2.0**31
    model.fit(rows, labels)
    # Criteo's programs print the bias in the place of the first weight.
    return np.concatenate([model.intercept_, model.coef_[0][1 if "Criteo" in name else 0 :]])


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
    codes: list[str] = []
    if data == "Criteo" and dpus <= CHECKED_DPUS:
        checked = upmem_checkout.run(
            folder, ["./bin/host_code"], seconds, NEARBANK_UPMEM_CHECK=str(folder / "check.json")
        )
        codes = sorted(set(re.findall(r"error\[(NB\d+)\]", checked.text)))
        if "NB0820" not in codes:
            return Outcome(
                "failed", f"the checker does not name the unaligned reads: {checked.why}", "", checked.seconds
            )
    if data == "Criteo":
        repair(folder)
        if failure := upmem_checkout.build(folder, f"NR_DPUS={dpus}", "SCALING=0", "AE=0", *paths):
            return failure
    found = upmem_checkout.run(folder, ["./bin/host_code"], seconds)
    if found.state != "passed" or "benchmark" in name:
        found.why = found.why or "no model to compare"
    else:
        compare(found, models(folder), EPOCHS[data], expected(name, dpus, exponents, features, labels))
    if data == "Criteo":
        found.why += "; X read where it is meant" + (f" (as it is: {', '.join(codes)})" if codes else "")
    return found


def compare(found: Outcome, written: list[np.ndarray], epochs: int, target: np.ndarray) -> None:
    """Judge the last model of a run."""
    if len(written) < epochs:
        found.state, found.why = "failed", f"{len(written)} models of {epochs}"
        return
    model = written[-1]
    if model.size != target.size:
        found.state, found.why = "failed", f"{model.size} weights of {target.size}"
        return
    # Nine decimals of single precision.
    wrong = np.abs(model - target) > 1e-9 + 1e-7 * np.abs(target)
    if wrong.any():
        found.state = "failed"
    used = np.count_nonzero(target)
    found.why = f"{np.count_nonzero(~wrong)} of {wrong.size} weights are those of the native training, {used} not 0"


def main() -> int:
    chosen = upmem_checkout.options(__doc__.splitlines()[0], "4", "16")
    with upmem_checkout.copied(chosen.checkout / "upmem_ml_coding" / "UPMEM") as root:
        names = [str(makefile.parent.relative_to(root)) for makefile in sorted(root.glob("*/*/*/Makefile"))]
        return upmem_checkout.table(names, chosen, lambda name, dpus, _: run(root, name, dpus, chosen.timeout))


if __name__ == "__main__":
    sys.exit(main())
