# SPDX-License-Identifier: Apache-2.0
"""Keeps exported graphs on disk under NEARBANK_HOME, so that a second plan of a large model needs no export."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

from nearbank import rundoc
from nearbank.program import PlacedGraph
from nearbank.settings import Settings, home_folder
from nearbank.splitting import Piece, Refused, SplitGraph

_SCHEMA = "nearbank-graph-1"
# Modules that only show results; all others count as part of the front end.
_PRESENTATION = ("cli", "error", "explain", "html_", "render_", "report")


class StoredGraph(PlacedGraph):
    """A graph that was exported by an earlier process; it is planned like any other, and cannot run.

    Parameters
    ----------
    stored : dict
        As `load` returns it.
    settings, name, progress
        As for `nearbank.program.PlacedGraph`.
    """

    def __init__(self, stored: dict[str, Any], settings: Settings, name: str, progress=None):
        super().__init__(settings, name, progress)
        pieces = [Piece(None, entry["inputs"], entry["outputs"], entry["text"]) for entry in stored["pieces"]]
        self.split = SplitGraph(pieces)
        self.pieces = [self._compile(piece, set(stored["fixed"]), stored["shownNames"]) for piece in pieces]


def open_graph(path: Path, settings: Settings, name: str, progress=None) -> StoredGraph | None:
    """Compile a stored graph.

    Parameters
    ----------
    path : pathlib.Path
        As `path_for` returns it.
    settings, name, progress
        As for `nearbank.program.PlacedGraph`.

    Returns
    -------
    StoredGraph or None
        None where there is no such file, or a damaged one, or one that the compiler does not take any more.
    """
    stored = load(path)
    if stored is None:
        return None
    try:
        return StoredGraph(stored, settings, name, progress)
    except (Refused, KeyError, TypeError):
        return None


def path_for(identity: dict[str, Any]) -> Path:
    """Name the file of a graph.

    Parameters
    ----------
    identity : dict
        What the graph depends on, as `nearbank.large_models.Blueprint.identity` returns it.

    Returns
    -------
    pathlib.Path
        ``$NEARBANK_HOME/graphs/KEY.json.gz``; KEY also depends on the versions of Python, torch, torch-mlir and
        transformers, and on the text of Nearbank's own front end.
    """
    import transformers

    software = {
        "schema": _SCHEMA,
        "versions": {name: rundoc.versions()[name] for name in ("python", "torch", "torch-mlir", "transformers")},
        # Locations in the graph hold paths of source files.
        "transformers": os.path.dirname(transformers.__file__),
        "frontEnd": _front_end(),
    }
    text = json.dumps([identity, software], sort_keys=True, default=str)
    return Path(home_folder()) / "graphs" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json.gz"


def _front_end() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.name.startswith(_PRESENTATION):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def load(path: Path) -> dict[str, Any] | None:
    """Read a graph.

    Parameters
    ----------
    path : pathlib.Path
        As `path_for` returns it.

    Returns
    -------
    dict or None
        None where there is no such file, or a damaged one.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            stored = json.load(file)
    except (OSError, EOFError, zlib.error, ValueError):
        return None
    return stored if isinstance(stored, dict) and stored.get("schema") == _SCHEMA else None


def store(path: Path, graph) -> bool:
    """Write a graph, unless parts of it run in eager PyTorch.

    Parameters
    ----------
    path : pathlib.Path
        As `path_for` returns it.
    graph : nearbank.program.CompiledGraph
        The graph.

    Returns
    -------
    bool
        Whether the file was written; a folder that cannot be written is no error.
    """
    if graph.split.eager_ops or any(piece.text is None for piece in graph.split.pieces):
        return False
    document = {
        "schema": _SCHEMA,
        "fixed": sorted(graph.fixed),
        "shownNames": graph.shown_names,
        "pieces": [
            {"inputs": piece.inputs, "outputs": piece.outputs, "text": piece.text} for piece in graph.split.pieces
        ],
    }
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(part, "wt", encoding="utf-8", compresslevel=3) as file:
            json.dump(document, file)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        return False
    return True
