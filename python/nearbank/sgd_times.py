# SPDX-License-Identifier: Apache-2.0
"""Times of training rounds by kind: simulated DPU work where there is some, closed forms for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearbank.sgd_data import DataSet

#: Kinds of time of a round, in the order in which they happen.
TIME_KINDS = ("toDpu", "launch", "dpuCompute", "mramWram", "waiting", "fromDpu", "aggregation", "link")
#: Those in which the host and its memory are busy.
_HOST_KINDS = ("toDpu", "fromDpu", "aggregation")


@dataclass
class SimulatedWork:
    """What simulated DPUs did in some rounds; nothing with the twin."""

    slowest_cycles: int = 0  #: Cycles of the slowest DPU of each round, summed over rounds.
    all_cycles: int = 0  #: Cycles of all DPUs.
    dma_bytes: int = 0  #: Between MRAM and WRAM, of all DPUs.

    def add(self, slowest: int, everybody: int, dma: int) -> None:
        """Add one round."""
        self.slowest_cycles += slowest
        self.all_cycles += everybody
        self.dma_bytes += dma


def shape_of(data: DataSet) -> dict[str, Any]:
    """Describe data as the time model sees it.

    Parameters
    ----------
    data : DataSet
        Training data.

    Returns
    -------
    dict
        ``features``, ``rows``, ``entriesPerRow``, ``isSparse``, ``hasValues``.
    """
    return {
        "features": data.num_features,
        "rows": data.num_rows,
        "entriesPerRow": data.max_row_entries(),
        "isSparse": data.is_sparse,
        "hasValues": data.values is not None,
    }


def round_seconds(job: Any, rounds: int, work: SimulatedWork) -> dict[str, float]:
    """Give the time of some rounds by kind.

    Parameters
    ----------
    job : TrainedJob
        The job.
    rounds : int
        How many.
    work : SimulatedWork
        What simulated DPUs did in these rounds; nothing takes the latest sample.

    Returns
    -------
    dict
        Seconds for each of `TIME_KINDS`. Work of the DPUs is simulated where there are samples; the rest is modelled.
        Compute and movement are those of the mean DPU; the slowest one's lead over it is waiting.
    """
    modelled = job.times["round"]
    seconds = {kind: modelled.get(kind, 0.0) * rounds for kind in TIME_KINDS}
    busy = seconds["dpuCompute"] + seconds["mramWram"]
    computing = seconds["dpuCompute"] / busy if busy else 0.0
    if job.samples:
        sample = job.samples[-1]
        busy = (work.slowest_cycles or sample["cycles"] * rounds) / (job.machine.clock_mhz * 1e6)
        computing = sample["cyclesWithoutDma"] / sample["cycles"]
    share = job.mean_share
    if work.slowest_cycles:
        share = work.all_cycles / (work.slowest_cycles * job.options.n_dpus)
    seconds["dpuCompute"] = busy * share * computing
    seconds["mramWram"] = busy * share * (1.0 - computing)
    seconds["waiting"] = busy * (1.0 - share)
    return overlapped(seconds, job.times["ownTransfers"] * rounds) if job.options.staleness else seconds


def dma_bytes(job: Any, rounds: int, work: SimulatedWork) -> float:
    """Give the bytes between MRAM and WRAM of all DPUs in some rounds.

    Parameters
    ----------
    job, rounds, work
        As in `round_seconds`.

    Returns
    -------
    float
        Counted by simulated DPUs, or by the latest sample for all of them, or TM-4.
    """
    if work.slowest_cycles:
        return float(work.dma_bytes)
    of_one = job.samples[-1]["dmaBytes"] if job.samples else job.times["dmaBytes"]
    return of_one * rounds * job.options.n_dpus * job.mean_share


def overlapped(seconds: Mapping[str, float], own: float) -> dict[str, float]:
    """Take away what asynchronous rounds hide (TM-8 in docs/model.md).

    Parameters
    ----------
    seconds : mapping from str to float
        Time of synchronous rounds by kind.
    own : float
        Seconds in which the host moves what one rank's DPUs need: they cannot work meanwhile.

    Returns
    -------
    dict
        The host serves one rank while others work: what is left of transfers and aggregation is their length beyond
        the DPUs' work, and at least `own`.

    Examples
    --------
    >>> seconds = {"toDpu": 2.0, "launch": 1.0, "dpuCompute": 3.0, "mramWram": 0.0, "waiting": 0.0, "fromDpu": 4.0}
    >>> seconds |= {"aggregation": 2.0, "link": 0.0}
    >>> left = overlapped(seconds, own=0.5)
    >>> left["toDpu"], left["fromDpu"], left["dpuCompute"]
    (1.0, 2.0, 3.0)
    """
    host = sum(seconds[kind] for kind in _HOST_KINDS)
    left = min(host, max(own, host - sum(seconds[kind] for kind in ("launch", "dpuCompute", "mramWram", "waiting"))))
    return {kind: value * left / host if kind in _HOST_KINDS and host else value for kind, value in seconds.items()}


def mean_share(data: DataSet, times: Mapping[str, Any], dpus: int) -> float:
    """Give the rows of the mean DPU over those of the fullest.

    Parameters
    ----------
    data : DataSet
        Training data.
    times : mapping
        What `nearbank._sgd.times` gave for it.
    dpus : int
        Number of DPUs.

    Returns
    -------
    float
        At most one.
    """
    return data.num_rows / (times["rowsPerDpu"] * dpus)


def times_from(job: Any) -> str:
    """Say where the times of a job come from.

    Parameters
    ----------
    job : TrainedJob
        Trained.

    Returns
    -------
    str
        Engine and equations (docs/model.md).
    """
    if not job.samples:
        return "closed forms TM-1 to TM-8"
    rest = "the rest from TM-1, TM-2, TM-6 and TM-8"
    if job.options.engine == "twin":
        return f"DPU work from {len(job.samples)} sampled rounds on the engine exact; {rest}"
    return f"DPU work of every round on the engine {job.options.engine}; {rest}"
