# SPDX-License-Identifier: Apache-2.0
"""A compiled graph: its pieces through the C++ core or eager PyTorch, in order, on real tensors."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import torch
from torch import fx

from nearbank.errors import IndexRangeError, InternalError, NearbankError, make_error
from nearbank.fixups import normalize
from nearbank.rundoc import NestNumbering, quantity
from nearbank.settings import Settings
from nearbank.simulation import Task
from nearbank.splitting import Refused, SplitGraph, split

_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i1": torch.bool,
}
#: Vector code may use aligned accesses on arguments.
_ALIGNMENT_BYTES = 64


def _core():
    import nearbank._core

    return nearbank._core


class CompiledPiece:
    """One piece that the core has compiled.

    Parameters
    ----------
    piece : nearbank.splitting.Piece
        With its MLIR text.
    options : dict
        Options of the core's Program.
    """

    def __init__(self, piece, options: dict):
        self.inputs = piece.inputs
        self.outputs = piece.outputs
        self.program = _core().Program(piece.text, json.dumps(options))
        self.layout = json.loads(self.program.describe())
        # A stored piece has no graph; it is planned, never run.
        nodes = piece.graph_module.graph.nodes if piece.graph_module is not None else ()
        results = [value for node in nodes if node.op == "output" for value in node.args[0]]
        self._output_dtypes = [node.meta["val"].dtype for node in results]

    def prepare(self, options: dict, progress) -> list[tuple[bytes, bytes, float]]:
        """Profile and compile; return key, task and size of each simulation that `plan` would wait for."""
        return self.program.prepare(json.dumps(options), lambda *state: progress(*state))

    def plan(self, options: dict, progress) -> dict:
        """Profile and place; `options` as the core's ``Program.plan`` takes them."""
        return json.loads(self.program.plan(json.dumps(options), lambda *state: progress(*state)))

    def run(self, arguments: list[torch.Tensor], options: dict) -> tuple[list[torch.Tensor], dict]:
        """Execute on CPU tensors; return results and the core's record."""
        tensors = [_as_argument(tensor) for tensor in arguments]
        buffers = []
        for buffer in self.layout["outputBuffers"]:
            dtype = _DTYPES[buffer["elementType"]]
            buffers.append(torch.empty(max(1, buffer["bytes"] // dtype.itemsize), dtype=dtype))
        record = self.program.execute(
            [tensor.data_ptr() for tensor in tensors], [buffer.data_ptr() for buffer in buffers], json.dumps(options)
        )
        outputs = [
            _as_dtype(self._output(output, tensors, buffers), dtype)
            for output, dtype in zip(self.layout["outputs"], self._output_dtypes, strict=True)
        ]
        return outputs, json.loads(record)

    @staticmethod
    def _output(output, tensors, buffers) -> torch.Tensor:
        if output.get("outputSlot") is not None:
            base, is_own = buffers[output["outputSlot"]], True
        elif output.get("constant") is not None:
            data = torch.tensor(output["constant"], dtype=torch.uint8)
            base, is_own = data.view(_DTYPES[output["elementType"]]), True
        else:
            base, is_own = tensors[output["argumentIndex"]].view(-1), False
        # An argument may be a part of a larger tensor.
        offset = base.storage_offset() + output.get("elementOffset", 0)
        view = base.as_strided(output["sizes"], output["strides"], offset)
        # A functional graph's result never aliases an argument.
        return view if is_own else view.clone()


def _as_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    # MLIR's integers have no sign: uint8 comes back as i8.
    return tensor if tensor.dtype == dtype else tensor.view(dtype)


def _as_argument(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT_BYTES == 0 else tensor.clone()


class PlacedGraph:
    """A graph whose pieces the core has compiled, and where their nests run.

    `settings` may be replaced between plans; what was compiled, profiled and simulated is used again.

    Parameters
    ----------
    settings : Settings
        Options of the run.
    name : str
        Name of the graph in the run document.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    """

    def __init__(self, settings: Settings, name: str, progress=None):
        self.settings = settings
        self.name = name
        self.progress = progress or (lambda *_: None)
        self.split = SplitGraph()
        self.pieces: list[Any] = []
        self.plan_document: dict[str, Any] | None = None
        self.record: dict[str, Any] | None = None

    def _compile(self, piece, fixed: set[str], shown: dict[str, str]) -> CompiledPiece:
        self.progress("compile", 0, 0)
        options = {
            "name": self.name,
            "parameters": [i for i, name in enumerate(piece.inputs) if name in fixed],
            "argNames": [shown.get(name, name) for name in piece.inputs],
        }
        try:
            return CompiledPiece(piece, options)
        except NearbankError as error:
            if isinstance(error, InternalError) or error.report.code.startswith("NB02"):
                raise Refused(error.report.actual or error.report.title) from error
            raise

    @property
    def compiled_pieces(self) -> list[CompiledPiece]:
        """The pieces that went through the core."""
        return [piece for piece in self.pieces if isinstance(piece, CompiledPiece)]

    def plan(self, simulate: str = "none", simulate_host: str = "none") -> dict[str, Any]:
        """Profile and place every nest.

        Parameters
        ----------
        simulate : {"none", "exact", "sampled"}, default "none"
            Whether each distinct nest is simulated on scratch data. Running the program simulates the nests on PIM
            by itself.
        simulate_host : {"none", "exact", "sampled"}, default "none"
            The same on the modelled host of the settings.

        Returns
        -------
        dict
            ``nests``, ``summary`` and ``remarks`` of all pieces, with nests numbered through.
        """
        plans = [piece.plan(options, self.progress) for piece, options in self._piece_options(simulate, simulate_host)]
        self.plan_document = self.numbering.merge_plans(plans)
        return self.plan_document

    def emit_upmem(self, folder: str) -> list[str]:
        """Write what the last plan placed on DPUs as UPMEM projects, one folder for each distinct nest.

        Parameters
        ----------
        folder : str
            Where; it is made when it is not there.

        Returns
        -------
        list of str
            Names of the folders in it.

        Raises
        ------
        nearbank.errors.DeviceError
            NB0601 when it cannot be written.
        """
        pieces = self.compiled_pieces
        prefixes = [f"part{number}_" if len(pieces) > 1 else "" for number in range(len(pieces))]
        return [
            name
            for piece, prefix in zip(pieces, prefixes, strict=True)
            for name in piece.program.emit_upmem(folder, prefix)
        ]

    def _piece_options(self, simulate: str, simulate_host: str) -> list[tuple[CompiledPiece, dict[str, Any]]]:
        """Compiled pieces with the options that the core's plan takes for them."""
        settings = self.settings
        self.numbering = NestNumbering([piece.layout["nests"] for piece in self.compiled_pieces])
        self.numbering.check(settings.pin + settings.forbid)
        common = {
            "machine": settings.machine,
            "set": [list(pair) for pair in settings.set],
            "policy": settings.policy,
            "db": settings.database,
            "threads": settings.host_threads,
            "simulate": simulate,
            "host": settings.modelled_host,
            "simulateHost": simulate_host if settings.modelled_host else "none",
        }
        return [
            (
                piece,
                {
                    **common,
                    "pin": self.numbering.selectors(settings.pin, number),
                    "forbid": self.numbering.selectors(settings.forbid, number),
                },
            )
            for number, piece in enumerate(self.compiled_pieces)
        ]

    def pending(self, simulate: str, simulate_host: str) -> list[Task]:
        """Profile and compile for the settings, and list the simulations that `plan` would wait for.

        Parameters
        ----------
        simulate, simulate_host : {"none", "exact", "sampled"}
            As for `plan`.

        Returns
        -------
        list of nearbank.simulation.Task
            Those whose results neither the database nor an earlier plan of this graph has.
        """
        tasks = []
        for piece, options in self._piece_options(simulate, simulate_host):
            machine = json.dumps({name: options[name] for name in ("machine", "set")})
            host = json.dumps({"machine": options["host"], "set": []})
            for key, payload, is_on_host, instructions in piece.prepare(options, self.progress):
                keep = partial(piece.program.add_simulation, payload, db=options["db"])
                tasks.append(Task(key, payload, instructions, host if is_on_host else machine, keep))
        return tasks


class CompiledGraph(PlacedGraph):
    """A static ATen graph, split, compiled and placed.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        ATen graph of static shapes with all tensors as placeholders.
    settings : Settings
        Options of the run.
    parameters : iterable of int
        Placeholders that hold parameters or buffers.
    argument_names : sequence of str, optional
        One name per placeholder.
    name : str
        Name of the graph in the run document.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    nearbank.errors.UserError
        NB0203 when an operator cannot be compiled and ``on_unsupported`` is "error".
    """

    def __init__(self, gm, settings: Settings, parameters=(), argument_names=None, name="model", progress=None):
        super().__init__(settings, name, progress)
        self.progress("import", 0, 0)
        started = time.perf_counter_ns()
        self.normal = normalize(gm)
        names = [node.name for node in self.normal.graph_module.graph.nodes if node.op == "placeholder"]
        self._arguments = names
        self._results = [
            node.name for node in next(n for n in self.normal.graph_module.graph.nodes if n.op == "output").args[0]
        ]
        shown = list(argument_names or names)
        shown += names[len(shown) :]
        first_constant = len(names) - len(self.normal.constants)
        self.fixed = {names[i] for i in parameters} | set(names[first_constant:])
        self.shown_names = dict(zip(names, shown, strict=True))
        self.split = split(self.normal.graph_module, lambda piece: self._compile(piece, self.fixed, self.shown_names))
        self.import_time = quantity(time.perf_counter_ns() - started, "ns", "measured")
        self._refuse_eager_ops()
        self.pieces = [piece if piece.program is None else piece.program for piece in self.split.pieces]
        self._last_use = self._find_last_uses()

    def _refuse_eager_ops(self) -> None:
        refused = [
            (op, s) for op, s in zip(self.split.eager_ops, self.split.sources, strict=True) if op.kind != "random"
        ]
        if self.settings.on_unsupported != "error" or not refused:
            return
        op, source = refused[0]
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise make_error(
            "user",
            "NB0203",
            "an operator cannot be compiled",
            where=f"{source.file}:{source.line}" if source.file else "an operator without a source line",
            expected="an operator that lowers to loop nests",
            actual=f"{op.op} ({op.reason}){more}",
            fix="rewrite the line, or let it run in eager PyTorch on the host (on_unsupported=host)",
        )

    def _find_last_uses(self) -> list[list[str]]:
        kept, last_use = set(self._results), []
        for piece in reversed(self.pieces):
            dead = [name for name in {*piece.inputs, *piece.outputs} if name not in kept]
            kept.update(dead)
            last_use.append(dead)
        return last_use[::-1]

    def run(self, arguments, *, poison: bool = False) -> list[Any]:
        """Execute the graph.

        Parameters
        ----------
        arguments : sequence of torch.Tensor
            One CPU tensor per placeholder of the original graph.
        poison : bool, default False
            Overwrite what PIM nests write before they run; for tests.

        Returns
        -------
        list
            Outputs of the original graph.

        Raises
        ------
        IndexError
            An index tensor addresses outside its table (NB0301).
        """
        if self.plan_document is None:
            self.plan()
        values = dict(zip(self._arguments, [*arguments, *self.normal.constants], strict=True))
        records = []
        options = {"threads": self.settings.host_threads, "poison": poison, "simulate": self.settings.simulate}
        with torch.no_grad():
            for number, piece in enumerate(self.pieces):
                inputs = [values[name] for name in piece.inputs]
                if isinstance(piece, CompiledPiece):
                    results, record = self._run_piece(piece, inputs, options)
                    records.append(record)
                else:
                    results = fx.Interpreter(piece.graph_module).run(*inputs)
                values.update(zip(piece.outputs, results, strict=True))
                for name in self._last_use[number]:
                    values.pop(name, None)
        self.record = self.numbering.merge_records(records)
        return self.normal.restore(arguments, [values[name] for name in self._results])

    @staticmethod
    def _run_piece(piece, inputs, options):
        try:
            return piece.run(inputs, options)
        except IndexRangeError:
            raise
        except NearbankError as error:
            if error.report.code == "NB0301":
                raise IndexError(str(error)) from error
            raise
