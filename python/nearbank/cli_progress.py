# SPDX-License-Identifier: Apache-2.0
"""Shows progress on stderr: a bar on a terminal, a line for each stage elsewhere."""

from __future__ import annotations

import os
import sys
import time


class Progress:
    """Receives the stages of a plan or a run.

    Called as ``progress(stage, done, total)``; a `total` of 0 means that the stage has no count. Used as a context
    manager, it clears its bar at the end. Only a terminal gets a bar; ``NO_COLOR`` takes its colours away.
    """

    def __init__(self, stream=None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._stage = ""
        self._started = time.monotonic()
        self._bar = None
        self._task = None
        self._left: float | None = None
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Show that `done` of `total` steps of a stage are over.

        Parameters
        ----------
        stage : str
            Words for what is being done, for example ``"profile"``.
        done, total : int, default 0
            Steps; a `total` of 0 means that they are not counted.
        """
        if self._is_terminal:
            self._show_bar(stage, done, total)
        elif stage != self._stage:
            count = f" ({total})" if total else ""
            print(f"[{time.monotonic() - self._started:6.1f} s] {stage}{count}", file=self._stream, flush=True)
        self._stage = stage

    def left(self, seconds: float | None) -> None:
        """Say how long the stage will still take, from the next call on.

        Parameters
        ----------
        seconds : float or None
            None when nobody can tell.
        """
        self._left = seconds

    def note(self, text: str) -> None:
        """Show a line that stays.

        Parameters
        ----------
        text : str
            The line.
        """
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(f"[{time.monotonic() - self._started:6.1f} s] {text}", file=self._stream, flush=True)

    def _show_bar(self, stage: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            console = Console(file=self._stream)
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
            )
            self._bar = Bar(*columns, console=console, transient=True)
            self._bar.start()
        if stage != self._stage or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
                self._left = None
            self._task = self._bar.add_task(stage, total=total or None, left="")
        left = "" if self._left is None else f"{spoken(self._left)} left"
        self._bar.update(self._task, completed=done, total=total or None, left=left)


def spoken(seconds: float) -> str:
    """Say how long something takes.

    Parameters
    ----------
    seconds : float
        The time.

    Returns
    -------
    str
        Rounded to what an estimate is worth.

    Examples
    --------
    >>> [spoken(seconds) for seconds in (8.2, 95, 5000)]
    ['8 s', '2 min', '1.4 h']
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
