# SPDX-License-Identifier: Apache-2.0
"""Lowers a static ATen graph to linalg-on-tensors MLIR text through torch-mlir, in a forked child.

torch-mlir can abort the process on some inputs; only the child dies then, and the failure comes back as data.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time
from dataclasses import dataclass, field

from nearbank.locations import source_of

#: Seconds after which a conversion counts as failed; the largest model tried (7B parameters) takes 3 s.
DEFAULT_TIMEOUT_S = 600.0

_NODE_LOCATION = re.compile(r'loc\("node:([^"]+)"\)|"node:([^"]+)"')
_DIAGNOSED_OP = re.compile(r"'?(torch\.(?:aten|prims|prim|operator|quantized|torchvision)[\w.]*)'?")
_PIPELINES = (
    "func.func(torch-match-quantized-custom-ops)",
    "torchdynamo-export-to-torch-backend-pipeline{extra-library=}",
    "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true}",
)
_TM_TENSOR_OP = re.compile(r"\btm_tensor\.(\w+)")


@dataclass
class ImportFailure:
    """Why a graph could not be lowered.

    Parameters
    ----------
    kind : str
        ``error`` (diagnostics), ``crash`` (the converter died), ``timeout`` or ``tm_tensor`` (an unknown dialect is
        left).
    message : str
        One line for the user.
    ops : list of str
        Operators that the diagnostics name, ``torch.aten.sort`` style.
    nodes : list of str
        FX nodes that the diagnostics name; only filled when the import ran with node locations.
    signal : str
        Name of the signal that ended the child, or "".
    details : str
        Everything the converter printed, shortened to 20,000 characters.
    """

    kind: str
    message: str
    ops: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    signal: str = ""
    details: str = ""


@dataclass
class ImportResult:
    """MLIR text, or the failure that prevented it; exactly one of both is set."""

    text: str | None = None
    failure: ImportFailure | None = None


def import_graph(gm, *, node_locations: bool = False, timeout_s: float = DEFAULT_TIMEOUT_S) -> ImportResult:
    """Lower an FX graph whose placeholders and outputs are all tensors of static shape.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        ATen graph; each node carries a fake tensor in ``meta["val"]``.
    node_locations : bool, default False
        Put FX node names instead of source lines into the text; used to find out which node fails.
    timeout_s : float, default 600
        Seconds before the conversion is stopped.

    Returns
    -------
    ImportResult
        The text of a module with one function ``main``, or the failure.

    Notes
    -----
    Runs in a forked child process: an abort inside torch-mlir does not reach the caller.
    """
    return import_graphs([gm], node_locations=node_locations, timeout_s=timeout_s)[0]


def import_graphs(gms, *, node_locations: bool = False, timeout_s: float = DEFAULT_TIMEOUT_S) -> list[ImportResult]:
    """Lower several graphs, each on its own, with as few child processes as possible.

    Parameters
    ----------
    gms : list of torch.fx.GraphModule
        Graphs as for `import_graph`.
    node_locations : bool, default False
        As for `import_graph`.
    timeout_s : float, default 600
        Seconds for each child.

    Returns
    -------
    list of ImportResult
        One per graph, in order. A crash ends one child; the graphs after it get a new one.
    """
    _load_torch_mlir()
    results: list[ImportResult] = []
    while len(results) < len(gms):
        batch = gms[len(results) :]
        done, failure = _run_child(batch, node_locations, timeout_s)
        results += done
        if len(done) < len(batch):
            results.append(ImportResult(failure=failure))
    return results


def _load_torch_mlir() -> None:
    # Loaded before the fork so that children share its pages and start at once.
    import torch_mlir.fx  # noqa: F401


def _run_child(gms, node_locations, timeout_s) -> tuple[list[ImportResult], ImportFailure | None]:
    read_fd, write_fd = os.pipe()
    log_fd = os.memfd_create("nearbank-import-log")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read_fd)
            _silence_child(log_fd)
            for gm in gms:
                _write_message(write_fd, _convert(gm, node_locations, log_fd))
            status = 0
        finally:
            # Neither atexit handlers nor destructors of the parent's state may run here.
            os._exit(status)
    os.close(write_fd)
    try:
        results, timed_out = _read_messages(read_fd, len(gms), time.monotonic() + timeout_s)
    finally:
        os.close(read_fd)
        if len(results) < len(gms):
            os.kill(pid, signal.SIGKILL) if timed_out else None
        _, status = os.waitpid(pid, 0)
        log = _read_log(log_fd)
    if len(results) == len(gms):
        return results, None
    return results, _crash(status, timed_out, timeout_s, log)


def _crash(status: int, timed_out: bool, timeout_s: float, log: str) -> ImportFailure:
    if timed_out:
        return ImportFailure("timeout", f"the importer did not finish in {timeout_s:g} s", details=log)
    name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
    return ImportFailure("crash", f"the importer crashed ({name or 'no result'})", signal=name, details=log)


def _silence_child(log_fd: int) -> None:
    import faulthandler
    import resource

    faulthandler.disable()
    for number in (signal.SIGABRT, signal.SIGSEGV, signal.SIGFPE, signal.SIGILL, signal.SIGBUS, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    sys.stdout = sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _write_message(fd: int, message: dict) -> None:
    data = json.dumps(message).encode()
    view = memoryview(len(data).to_bytes(8, "little") + data)
    while view:
        view = view[os.write(fd, view) :]


def _read_messages(fd: int, count: int, deadline: float) -> tuple[list[ImportResult], bool]:
    results, buffer = [], bytearray()
    while len(results) < count:
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return results, True
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            break
        buffer += chunk
        while len(buffer) >= 8 and len(buffer) >= 8 + int.from_bytes(buffer[:8], "little"):
            end = 8 + int.from_bytes(buffer[:8], "little")
            message = json.loads(buffer[8:end])
            del buffer[:end]
            failure = message.get("failure")
            results.append(ImportResult(message.get("text"), ImportFailure(**failure) if failure else None))
    return results, False


def _read_log(fd: int) -> str:
    size = os.fstat(fd).st_size
    log = os.pread(fd, min(size, 20000), 0).decode(errors="replace")
    os.close(fd)
    return log


def _convert(gm, node_locations: bool, log_fd: int) -> dict:
    """Runs in the child: lowers one graph and returns the message for the parent."""
    os.ftruncate(log_fd, 0)
    os.lseek(log_fd, 0, os.SEEK_SET)
    try:
        text = _lower(gm, node_locations)
    except BaseException as error:  # the child reports whatever happened
        sys.stderr.flush()
        log = os.pread(log_fd, 20000, 0).decode(errors="replace")
        return {"failure": _describe_error(error, log)}
    sys.stderr.flush()
    log = os.pread(log_fd, 20000, 0).decode(errors="replace")
    if "error:" in log:
        # Some passes report an error and still succeed.
        return {"failure": _describe_error(RuntimeError("the importer reported an error"), log)}
    leftover = sorted(set(_TM_TENSOR_OP.findall(text)))
    if leftover:
        message = "no loop form for " + ", ".join("tm_tensor." + op for op in leftover)
        return {"failure": {"kind": "tm_tensor", "message": message, "ops": ["tm_tensor." + op for op in leftover]}}
    return {"text": text}


def _describe_error(error: BaseException, log: str) -> dict:
    details = f"{error}\n{log}".strip()
    nodes = [a or b for a, b in _NODE_LOCATION.findall(details)]
    errors = re.findall(r"error: (.*)", details) or [f"{type(error).__name__}: {error}"]
    ops = _DIAGNOSED_OP.findall("\n".join(errors))
    first = next((line for line in errors if line.strip()), "unknown error").strip()
    return {
        "kind": "error",
        "message": _readable(first.splitlines()[0])[:300],
        "ops": list(dict.fromkeys(ops)),
        "nodes": list(dict.fromkeys(nodes)),
        "details": details[:20000],
    }


def _readable(message: str) -> str:
    """Say what the usual diagnostics mean: an operator has no lowering."""
    if not message.startswith("failed to legalize operation 'torch."):
        return message
    operator = re.search(r"torch\.((?!operator|constant)\w+\.\w+)", message)
    return f"torch-mlir has no lowering for {operator[1]}" if operator else "torch-mlir has no lowering for it"


def _lower(gm, node_locations: bool) -> str:
    from torch_mlir import ir, passmanager
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import fx_importer

    context = ir.Context()
    # Threads would start anew in each child; the graphs are small.
    context.enable_multithreading(False)
    torch_dialect.register_dialect(context)
    locate = _node_location if node_locations else _source_location

    class LocatedCache(fx_importer.ContextCache):
        def get_node_location(self, node):
            return locate(node, context)

    importer = fx_importer.FxImporter(context=context)
    importer._cc = LocatedCache(context, py_attr_tracker=importer._py_attr_tracker)
    importer.import_stateless_graph(gm.graph)
    context.emit_error_diagnostics = True
    with context:
        for pipeline in _PIPELINES:
            passmanager.PassManager.parse(f"builtin.module({pipeline})").run(importer.module_op)
    return importer.module_op.get_asm(enable_debug_info=True)


def _node_location(node, context):
    from torch_mlir import ir

    return ir.Location.name("node:" + node.name, context=context)


def _source_location(node, context):
    from torch_mlir import ir

    if node.op in ("placeholder", "output"):
        return ir.Location.unknown(context)
    source = source_of(node)
    child = ir.Location.file(source.file, source.line, 0, context=context) if source.file else None
    return ir.Location.name(f"{source.module_path}|{source.torch_op}", child, context=context)
