# SPDX-License-Identifier: Apache-2.0
"""Carries out pending simulations: here, in processes of this machine, or on the ranks of an MPI job."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from nearbank.cli_progress import spoken
from nearbank.errors import from_core, make_error
from nearbank.simulation_worker import read_frame, simulate, write_frame

#: An estimate is announced when the whole takes longer.
ANNOUNCED_SECONDS = 60.0
#: The rate is known well enough after so many seconds of simulating.
_CALIBRATION_SECONDS = 2.0
#: Fewer instructions than this are simulated before other processes would have started (measured: a process takes 0.4 s
#: to start, and executes some 100 million instructions a second).
_WORTH_PROCESSES = 100e6


@dataclass(frozen=True)
class Task:
    """A simulation to be done.

    Parameters
    ----------
    key : bytes
        Equal for equal simulations.
    payload : bytes
        For `nearbank.simulation_worker.simulate`.
    instructions : float
        That will be executed, roughly.
    machine : str
        JSON with ``machine`` and ``set``.
    keep : callable
        Called with the timing once it is there; stores it.
    """

    key: bytes
    payload: bytes
    instructions: float
    machine: str
    keep: Callable[[str], None]

    def options(self, threads: int) -> str:
        """Return the worker's options, as JSON."""
        return json.dumps({**json.loads(self.machine), "threads": threads})


class ProcessPool(Executor):
    """Worker processes that simulate; each belongs to one thread of this process.

    Unlike `concurrent.futures.ProcessPoolExecutor` it does not import the user's main module into the workers.

    Parameters
    ----------
    jobs : int
        Number of processes.
    """

    def __init__(self, jobs: int):
        self._threads = ThreadPoolExecutor(jobs)
        self._local = threading.local()
        self._processes: list[subprocess.Popen] = []

    def submit(self, _function, /, task: bytes, options: str) -> Future:
        """Have a worker simulate a task; the function is always `nearbank.simulation_worker.simulate`."""
        return self._threads.submit(self._ask, task, options)

    def _ask(self, task: bytes, options: str) -> dict[str, Any]:
        process = getattr(self._local, "process", None)
        if process is None:
            process = self._local.process = _start_worker()
            self._processes.append(process)
        answer = None
        with contextlib.suppress(OSError):
            write_frame(process.stdin, options.encode())
            write_frame(process.stdin, task)
            answer = read_frame(process.stdout)
        if answer is None:
            process.wait()
            raise make_error(
                "device",
                "NB0509",
                "a simulating process ended",
                where=f"process {process.pid}",
                expected="a simulated time",
                actual=f"exit status {process.returncode}",
                fix="run the same command again; with --jobs 1 it needs less memory",
            )
        return json.loads(answer)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all workers, whatever they are doing."""
        for process in self._processes:
            process.kill()
        self._threads.shutdown(wait=wait, cancel_futures=True)
        for process in self._processes:
            process.wait()
            process.stdout.close()
            with contextlib.suppress(OSError):  # What a worker that died had not read.
                process.stdin.close()


def _start_worker() -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "nearbank.simulation_worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


class Forecast:
    """Predicts how long the rest takes from the instructions and the time of what is done.

    Parameters
    ----------
    tasks : sequence of Task
        All tasks.
    jobs : int
        How many are simulated at a time.
    """

    def __init__(self, tasks: Sequence[Task], jobs: int):
        self._left = sum(task.instructions for task in tasks)
        self._jobs = jobs
        self._done = self._seconds = 0.0

    def add(self, task: Task, seconds: float) -> None:
        """Take notice of a finished task and the seconds that it took."""
        self._left -= task.instructions
        self._done += task.instructions
        self._seconds += seconds

    @property
    def is_calibrated(self) -> bool:
        """Whether enough was simulated to tell the rate."""
        return self._done > 0 and self._seconds >= _CALIBRATION_SECONDS

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all is done; None before the first task is."""
        if not self._done:
            return None
        return max(self._left, 0.0) * self._seconds / self._done / self._jobs


def run_tasks(
    tasks: Sequence[Task], jobs: int, threads: int, progress, executor: Executor | None = None, workers: int = 1
) -> None:
    """Simulate all tasks and keep each result as soon as it is there.

    Parameters
    ----------
    tasks : sequence of Task
        Several with the same key are simulated once.
    jobs : int
        Processes; 1 simulates in this one.
    threads : int
        Threads of this process, for 1 job.
    progress : callable
        Called as ``progress("simulate", done, total)``; its ``left`` and ``note``, where it has them, get the seconds
        that are left and an estimate in words.
    executor : concurrent.futures.Executor, optional
        Where tasks are simulated, instead of processes of this machine.
    workers : int
        How many tasks the executor does at a time.

    Raises
    ------
    NearbankError
        What the simulator raised; results that were there before it are kept.
    """
    groups: dict[bytes, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.key, []).append(task)
    distinct = [group[0] for group in groups.values()]
    if not distinct:
        return
    is_small = sum(task.instructions for task in distinct) < _WORTH_PROCESSES
    with contextlib.ExitStack() as stack:
        if executor is None and jobs > 1 and len(distinct) > 1 and not is_small:
            workers = min(jobs, len(distinct))
            executor = stack.enter_context(ProcessPool(workers))
        if executor is None:
            results, workers = _here(distinct, threads), 1
        else:
            results = _elsewhere(distinct, executor)
        _collect(results, groups, Forecast(distinct, workers), progress)


def _here(tasks: list[Task], threads: int) -> Iterator[tuple[Task, dict]]:
    # Short ones first, so that an estimate is there soon.
    for task in sorted(tasks, key=lambda task: task.instructions):
        yield task, simulate(task.payload, task.options(threads))


def _elsewhere(tasks: list[Task], executor: Executor) -> Iterator[tuple[Task, dict]]:
    # Some short ones first, so that an estimate is there soon; then the longest, so that none is left for the end.
    ordered = sorted(tasks, key=lambda task: task.instructions)
    third = len(ordered) // 3
    ordered = ordered[:third] + ordered[third:][::-1]
    waiting = {executor.submit(simulate, task.payload, task.options(1)): task for task in ordered}
    try:
        while waiting:
            # Not for ever: an interrupt is seen between two waits.
            done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    finally:
        for future in waiting:
            future.cancel()


def _collect(results, groups: dict[bytes, list[Task]], forecast: Forecast, progress) -> None:
    announce = getattr(progress, "note", None)
    show_left = getattr(progress, "left", None)
    started = time.monotonic()
    progress("simulate", 0, len(groups))
    for done, (task, result) in enumerate(results, 1):
        if "error" in result:
            raise from_core(result["error"])
        for member in groups[task.key]:
            member.keep(result["timing"])
        forecast.add(task, result["seconds"])
        if show_left:
            show_left(forecast.seconds_left)
        if announce and forecast.is_calibrated:
            whole = time.monotonic() - started + forecast.seconds_left
            if whole > ANNOUNCED_SECONDS:
                text = f"simulating {len(groups)} nests will take about {spoken(whole)}"
                announce(f"{text}; --simulate none only predicts")
            announce = None
        progress("simulate", done, len(groups))
