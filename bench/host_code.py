# SPDX-License-Identifier: Apache-2.0
"""Compares generated host code with eager PyTorch: cpu-only time / eager time for every built-in model.

Both are measured, in turns within one run, with the same number of threads; only their ratio is a result.

--lines compares source line by source line as well: the nests of a line with the operators of the captured graph on
that line, which eager PyTorch then runs one by one. Fusion moves work between lines, so short lines say little.
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import torch
from compiled import LAYERS, compile_model, timed_launches
from context import describe
from nearbank.locations import source_of
from nearbank.specs import BUILT_IN_NAMES


def measure(
    spec: str, repeats: int, threads: int, database: str, lines: bool
) -> tuple[list[float], list[float], list[float]]:
    """Return host nest time, wall time of the whole execution and eager time, in ns, of each repeat."""
    captured, graph = compile_model(spec, policy="cpu-only", simulate="none", threads=threads, db=database)
    torch.set_num_threads(graph.settings.host_threads)
    model = captured.reference(None)
    nests, walls, eager = [], [], []
    by_nest = defaultdict(list)
    for repeat in range(repeats + 1):
        # Each side is timed right after a run of its own: threads of eager PyTorch spin for a while after their last
        # work, on cores that ours need, and whoever begins after a pause finds cold caches and sleeping threads.
        time.sleep(0.05)
        graph.run(captured.arguments)
        started = time.perf_counter_ns()
        graph.run(captured.arguments)
        wall = time.perf_counter_ns() - started
        model.time_ns()
        eager_time = model.time_ns()
        if repeat > 0:  # The first pass warms caches and memory up.
            launches = timed_launches(graph)
            nests.append(sum(launch["time"]["value"] for launch in launches))
            for launch in launches:
                by_nest[launch["nest"]].append(launch["time"]["value"])
            walls.append(wall)
            eager.append(eager_time)
    if lines:
        compare_lines(captured, graph, by_nest, repeats)
    return nests, walls, eager


class TimedInterpreter(torch.fx.Interpreter):
    """Runs a graph operator by operator and keeps the time of each, in ns."""

    def __init__(self, module) -> None:
        super().__init__(module)
        self.times: dict[str, list[int]] = defaultdict(list)

    def run_node(self, node):
        """Run and time one operator."""
        started = time.perf_counter_ns()
        result = super().run_node(node)
        self.times[node.name].append(time.perf_counter_ns() - started)
        return result


def compare_lines(captured, graph, by_nest: dict[str, list[float]], repeats: int) -> None:
    """Print the nests' and eager's time of each source line, the largest ratios first."""
    interpreter = TimedInterpreter(captured.graph_module)
    with torch.no_grad():
        for _ in range(repeats):
            interpreter.run(*captured.arguments)
    eager, ours = defaultdict(float), defaultdict(float)
    for node in captured.graph_module.graph.nodes:
        if node.op == "call_function":
            source = source_of(node)
            line = f"{Path(source.file).name}:{source.line}" if source.file else "<unknown>"
            eager[line] += statistics.median(interpreter.times[node.name])
    nests = {nest["id"]: nest for nest in graph.plan_document["nests"]}
    for name, times in by_nest.items():
        ours[Path(nests[name]["source"] or "<unknown>").name] += statistics.median(times)
    print(f"  {'line':36} {'cpu-only us':>12} {'eager us':>12} {'ratio':>7}")
    for line in sorted(ours, key=lambda line: -ours[line] / max(eager[line], 1)):
        print(f"  {line:36} {ours[line] / 1e3:12.1f} {eager[line] / 1e3:12.1f} {ours[line] / max(eager[line], 1):7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*BUILT_IN_NAMES, *LAYERS]
    parser.add_argument(
        "specs", nargs="*", default=names, metavar="SPEC", help=f"of {', '.join(names)}; all by default"
    )
    parser.add_argument("--lines", action="store_true", help="compare the source lines of each model")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0, help="0 means all cores")
    options = parser.parse_args()
    print(describe())
    print(f"{'model':26} {'cpu-only ms':>12} {'eager ms':>10} {'ratio':>7} {'spread of ratio':>17} {'wall/eager':>11}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for spec in options.specs:
            nests, walls, eager = measure(
                spec, options.repeats, options.threads, str(Path(folder) / "profiles.sqlite"), options.lines
            )
            pairs = sorted(nest / base for nest, base in zip(nests, eager, strict=True))
            ratio = statistics.median(nests) / statistics.median(eager)
            ratios.append(ratio)
            low, high = pairs[len(pairs) // 4], pairs[len(pairs) * 3 // 4]
            print(
                f"{spec:26} {statistics.median(nests) / 1e6:12.3f} {statistics.median(eager) / 1e6:10.3f} {ratio:7.2f} "
                f"{low:8.2f}–{high:<8.2f} {statistics.median(walls) / statistics.median(eager):11.2f}",
                flush=True,
            )
    print(f"geometric mean of cpu-only / eager: {statistics.geometric_mean(ratios):.3f} over {len(ratios)} models")


if __name__ == "__main__":
    main()
