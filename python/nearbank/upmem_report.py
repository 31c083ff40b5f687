# SPDX-License-Identifier: Apache-2.0
"""Reports on a run of an UPMEM program: launches, transfers, and where cycles went."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nearbank.errors import make_error
from nearbank.html_templates import templates
from nearbank.render_text import table_lines

_SCHEMA = "nearbank-upmem-run/1"
#: Columns that are aligned to the right.
_NUMBERS = {
    *("#", "DPUs", "tasklets", "ms", "cycles", "IPC", "awake", "DMA bytes", "DMA busy", "DMA wait"),
    *("count", "bytes", "us", "GB/s"),
}


def read(path: Path) -> Mapping[str, Any]:
    """Read what NEARBANK_STATS wrote.

    Parameters
    ----------
    path : Path
        The JSON file.

    Returns
    -------
    mapping
        The document.

    Raises
    ------
    UserError
        NB0810 when it is no such file.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        schema = document.get("schema") if isinstance(document, dict) else None
        actual = f"schema {schema}"
    except (OSError, ValueError) as error:
        document, schema, actual = {}, None, str(error)
    if schema != _SCHEMA:
        raise make_error(
            "user",
            "NB0810",
            "statistics of an UPMEM run cannot be read",
            where=str(path),
            expected=f"JSON of schema {_SCHEMA}",
            actual=actual,
            fix="run the host program with NEARBANK_STATS=run.json",
        )
    return document


def launch_row(event: Mapping[str, Any]) -> dict[str, Any]:
    """Derive the figures of one launch.

    Parameters
    ----------
    event : mapping
        An event of the document with ``what`` equal to ``launch``.

    Returns
    -------
    dict
        Time in ms, cycles of the slowest DPU, IPC, mean number of tasklets awake, share of slots by kind, DMA bytes and
        the share of tasklet time spent waiting for DMA.
    """
    cycles = max(event["cycles"], 1)
    tasklet_cycles = max(event["taskletCycles"], 1)
    slots = max(event["slots"], 1)
    return {
        "ms": event["us"] / 1000,
        "dpus": event["dpus"],
        "tasklets": event["tasklets"],
        "maxCycles": event["maxCycles"],
        "ipc": event["slots"] / cycles,
        "awake": (event["taskletCycles"] - event["sleepCycles"] - event["dmaStallCycles"]) / cycles,
        "slots": event["slots"],
        "kinds": {kind: count / slots for kind, count in event["slotsByKind"].items() if count},
        "dmaBytes": event["dmaReadBytes"] + event["dmaWriteBytes"],
        "dmaStall": event["dmaStallCycles"] / tasklet_cycles,
        "dmaBusy": event["dmaBusyCycles"] / cycles,
        "port": event["portCycles"] / cycles,
    }


def transfer_row(event: Mapping[str, Any]) -> dict[str, Any]:
    """Derive the figures of one transfer.

    Parameters
    ----------
    event : mapping
        An event of the document with ``what`` equal to ``to``, ``from`` or ``broadcast``.

    Returns
    -------
    dict
        Direction, memory, symbol, DPUs, bytes over all DPUs, time in us and bandwidth in GB/s.
    """
    total = event["bytesPerDpu"] * event["dpus"]
    return {
        "what": event["what"],
        "memory": event["memory"],
        "symbol": event["symbol"],
        "dpus": event["dpus"],
        "bytes": total,
        "us": event["us"],
        "gbs": total / event["us"] / 1000 if event["us"] else 0.0,
    }


def merged(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put equal transfers into one row.

    Parameters
    ----------
    events : iterable of mapping
        Transfers.

    Returns
    -------
    list of dict
        Rows of `transfer_row` with ``count``; bytes and times are sums.
    """
    rows: dict[tuple, dict[str, Any]] = {}
    for event in events:
        row = transfer_row(event)
        key = (row["what"], row["memory"], row["symbol"], row["dpus"], row["bytes"])
        if key in rows:
            first = rows[key]
            first["count"] += 1
            first["us"] += row["us"]
            first["bytes"] += row["bytes"]
            first["gbs"] = first["bytes"] / first["us"] / 1000 if first["us"] else 0.0
        else:
            rows[key] = {**row, "count": 1}
    return list(rows.values())


def _tables(document: Mapping[str, Any]) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    launches = [launch_row(event) for event in document["events"] if event["what"] == "launch"]
    transfers = merged(event for event in document["events"] if event["what"] in ("to", "from", "broadcast"))
    launch_rows = []
    for number, row in enumerate(launches):
        kinds = sorted(row["kinds"].items(), key=lambda item: -item[1])
        launch_rows.append(
            [
                str(number),
                str(row["dpus"]),
                str(row["tasklets"]),
                f"{row['ms']:.3f}",
                f"{row['maxCycles']:,}",
                f"{row['ipc']:.3f}",
                f"{row['awake']:.1f}",
                f"{row['dmaBytes']:,}",
                f"{row['dmaBusy']:.0%}",
                f"{row['dmaStall']:.0%}",
                ", ".join(f"{kind} {share:.0%}" for kind, share in kinds if share >= 0.005),
            ]
        )
    transfer_rows = [
        [
            str(row["count"]),
            row["what"],
            row["memory"],
            row["symbol"],
            str(row["dpus"]),
            f"{row['bytes']:,}",
            f"{row['us']:.1f}",
            f"{row['gbs']:.2f}",
        ]
        for row in transfers
    ]
    return [
        (
            "launches (time and cycles simulated)",
            ("#", "DPUs", "tasklets", "ms", "cycles", "IPC", "awake", "DMA bytes", "DMA busy", "DMA wait", "slots"),
            launch_rows,
        ),
        (
            "transfers (time modelled)",
            ("count", "way", "memory", "symbol", "DPUs", "bytes", "us", "GB/s"),
            transfer_rows,
        ),
    ]


def totals(document: Mapping[str, Any]) -> dict[str, float]:
    """Sum times by what took them.

    Parameters
    ----------
    document : mapping
        The document.

    Returns
    -------
    dict of str to float
        Milliseconds of launches, transfers and loads.
    """
    sums = {"launch": 0.0, "transfer": 0.0, "load": 0.0}
    for event in document["events"]:
        sums[event["what"] if event["what"] in sums else "transfer"] += event["us"] / 1000
    return sums


def _heading(document: Mapping[str, Any]) -> str:
    sums = totals(document)
    return (
        f"{document['machine']}, engine {document['engine']}: launches {sums['launch']:.3f} ms (simulated), "
        f"transfers {sums['transfer']:.3f} ms (modelled), loads {sums['load']:.3f} ms (assumed), "
        f"DPU energy {document['joules']:.4g} J (modelled)"
    )


def text(document: Mapping[str, Any]) -> str:
    """Print the tables.

    Parameters
    ----------
    document : mapping
        The document.

    Returns
    -------
    str
        Lines of text.
    """
    lines = [_heading(document)]
    for title, columns, rows in _tables(document):
        numbers = [i for i in range(len(columns)) if columns[i] in _NUMBERS]
        lines += ["", title, *table_lines([columns, *rows], numbers)]
    return "\n".join(lines)


def _bars(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What launches, transfers and loads took, and what launches spent their issue slots on."""
    sums = totals(document)
    whole = sum(sums.values()) or 1.0
    kinds = (("launch", "pim", "simulated"), ("transfer", "link", "modelled"), ("load", "host", "assumed"))
    bars = [
        {
            "label": f"{name}{'es' if name == 'launch' else 's'}",
            "side": side,
            "share": round(100 * sums[name] / whole, 2),
            "text": f"{sums[name]:.3f} ms",
            "kind": kind,
        }
        for name, side, kind in kinds
    ]
    slots: Counter[str] = Counter()
    for event in document["events"]:
        slots.update(event.get("slotsByKind", {}))
    return bars + [
        {
            "label": f"slots: {kind}",
            "side": "pim",
            "share": round(100 * count / slots.total(), 2),
            "text": f"{count:,}",
            "kind": "simulated",
        }
        for kind, count in slots.most_common()
        if count
    ]


def page(document: Mapping[str, Any]) -> str:
    """Write the tables as one HTML page that needs nothing else.

    Parameters
    ----------
    document : mapping
        The document.

    Returns
    -------
    str
        HTML.
    """
    return (
        templates()
        .get_template("upmem.html.j2")
        .render(
            document=document,
            heading=_heading(document),
            bars=_bars(document),
            tables=_tables(document),
            numbers=_NUMBERS,
        )
    )


def trace(document: Mapping[str, Any]) -> str:
    """Write the events as a trace that Perfetto and Chrome open.

    Parameters
    ----------
    document : mapping
        The document.

    Returns
    -------
    str
        JSON; times are simulated.
    """
    events = [
        {
            "name": f"{event['what']} {event.get('symbol', '')}".strip(),
            "ph": "X",
            "ts": event["startUs"],
            "dur": event["us"],
            "pid": 1,
            "tid": 1 if event["what"] == "launch" else 2,
            "args": {key: value for key, value in event.items() if key not in ("startUs", "us")},
        }
        for event in document["events"]
    ]
    names = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": name}}
        for number, name in ((1, "DPUs"), (2, "host transfers"))
    ]
    return json.dumps({"traceEvents": names + events, "displayTimeUnit": "ns"})
