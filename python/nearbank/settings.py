# SPDX-License-Identifier: Apache-2.0
"""Options of plan, run and the torch.compile backend, checked before anything slow happens."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nearbank.errors import make_error, nearest, unknown_name

#: Placement policies, in the order of the documentation.
POLICIES = (
    "two-stage",
    "cpu-only",
    "pim-only",
    "op-type",
    "greedy",
    "min-cut",
    "oracle",
    "mpki",
    "roofline",
    "damov",
)
#: The host that measured times come from.
NATIVE = "native"
DEFAULT_HOST = "host-16"
_SIMULATE = ("exact", "sampled", "none")
_ON_UNSUPPORTED = ("host", "error")


@dataclass(frozen=True)
class Settings:
    """How models are placed and executed.

    Parameters
    ----------
    machine : str, default "nmc-64"
        Name of a machine, or path of a machine file.
    policy : str, default "two-stage"
        Placement policy; "oracle" needs ``simulate="exact"`` or "sampled".
    host : str, default "host-16"
        Host that PIM is compared with: name or file of a machine of kind host, which is simulated as PIM is; or
        "native": this machine, whose measured times are compared with nothing.
    simulate : {"exact", "sampled", "none"}, default "exact"
        Whether nests on PIM are executed by the simulator; with "none" they run on the host and PIM times are
        predicted.
    threads : int, default 0
        Host threads; 0 means all cores that this process may use.
    pin, forbid : sequence of str
        Selectors of nests that must run on PIM, or must not.
    on_unsupported : {"host", "error"}, default "host"
        Run operators that cannot be compiled in eager PyTorch, or raise.
    db : str, optional
        Profile database; default ``$NEARBANK_HOME/profiles.sqlite``.
    set : sequence of (key, value)
        Machine values that replace those of the machine file.
    name : str
        Name of the model in reports.
    """

    machine: str = "nmc-64"
    policy: str = "two-stage"
    host: str = ""
    simulate: str = "exact"
    threads: int = 0
    pin: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    on_unsupported: str = "host"
    db: str | None = None
    set: tuple[tuple[str, str], ...] = field(default=())
    name: str = "model"

    @classmethod
    def from_options(cls, options: Mapping[str, Any], where: str) -> Settings:
        """Check options by name and value.

        Parameters
        ----------
        options : mapping
            Option name to value.
        where : str
            Where the options stand, for the message.

        Returns
        -------
        Settings
            The options, in one form.

        Raises
        ------
        nearbank.errors.UserError
            NB0204 unknown option, NB0208 value that is not valid, NB0404 unknown policy.
        """
        known = [entry.name for entry in dataclasses.fields(cls)]
        for name in options:
            if name not in known:
                raise unknown_name("user", "NB0204", "unknown option", name, known, where=where)
        values = {name: value for name, value in options.items() if value is not None}
        for name in ("pin", "forbid"):
            if name in values:
                values[name] = _strings(name, values[name], where)
        if "set" in values:
            values["set"] = _pairs(values["set"], where)
        for name in ("machine", "host", "db", "name"):
            if name in values:
                values[name] = os.fspath(values[name]) if isinstance(values[name], Path) else values[name]
                if not isinstance(values[name], str):
                    raise _invalid(name, values[name], "text", where)
        for name, choices in (("simulate", _SIMULATE), ("on_unsupported", _ON_UNSUPPORTED)):
            if name in values and values[name] not in choices:
                raise unknown_name(
                    "user",
                    "NB0208",
                    "value is not valid for this option",
                    str(values[name]),
                    choices,
                    where=f"{where}, option {name}",
                )
        policy = values.get("policy", "two-stage")
        if policy not in POLICIES:
            close = nearest(str(policy), POLICIES)
            raise make_error(
                "user",
                "NB0404",
                "unknown policy",
                where=f"--policy {policy}",
                expected=f"one of {', '.join(POLICIES)}",
                actual=repr(policy),
                fix=f"did you mean {close!r}?" if close else "",
            )
        threads = values.get("threads", 0)
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 0:
            raise _invalid("threads", threads, "a non-negative integer", where)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return what the run document records about the options.

        Returns
        -------
        dict
            Options that are not fields of the run already.
        """
        return {
            "pin": list(self.pin),
            "forbid": list(self.forbid),
            "onUnsupported": self.on_unsupported,
            "db": self.database,
            "set": [f"{key}={value}" for key, value in self.set],
        }

    @property
    def modelled_host(self) -> str:
        """Name or file of the host that is simulated; empty for the native one."""
        host = self.host or default_host()
        return "" if host == NATIVE else host

    @property
    def host_threads(self) -> int:
        """Host threads that are really used."""
        return self.threads or len(os.sched_getaffinity(0))

    @property
    def database(self) -> str:
        """Path of the profile database; its folder is made by who opens it."""
        return self.db or os.path.join(home_folder(), "profiles.sqlite")


def default_host() -> str:
    """Return the host that PIM is compared with unless the user names another.

    Returns
    -------
    str
        ``"host-16"``; ``"native"`` where the simulator lacks its vector unit.
    """
    try:
        import nearbank._core
    except ImportError:  # Only without the extension, where nothing can be compiled either.
        return NATIVE
    return DEFAULT_HOST if nearbank._core.can_simulate(DEFAULT_HOST) else NATIVE


def home_folder() -> str:
    """Return the folder of caches and databases.

    Returns
    -------
    str
        ``$NEARBANK_HOME``, by default ``~/.cache/nearbank``.
    """
    return os.environ.get("NEARBANK_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "nearbank")


def _invalid(name, value, expected, where):
    return make_error(
        "user",
        "NB0208",
        "value is not valid for this option",
        where=f"{where}, option {name}",
        expected=expected,
        actual=repr(value),
    )


def _strings(name, value, where):
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise _invalid(name, value, "text or a list of texts", where)
    return tuple(value)


def _pairs(value, where):
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, str):
        value = [value]
    pairs = []
    for item in value:
        if isinstance(item, str):
            key, separator, text = item.partition("=")
            if not separator:
                raise _invalid("set", item, "KEY=VALUE", where)
            item = (key.strip(), text.strip())
        if len(item) != 2:
            raise _invalid("set", item, "a key and a value", where)
        pairs.append((str(item[0]), str(item[1])))
    return tuple(pairs)
