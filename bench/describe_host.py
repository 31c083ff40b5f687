# SPDX-License-Identifier: Apache-2.0
"""Writes a machine file of kind host for the machine that it runs on.

What can be measured is measured by bench_host_probe; the rest of the core comes from machines/host-16.yaml, which
describes AMD's Zen 3: on another core those values are wrong, and the file says so.

    describe_host.py --out machines/this-host.yaml
"""

import argparse
import json
import re
import subprocess
from datetime import date
from pathlib import Path

from context import describe

ROOT = Path(__file__).resolve().parents[1]
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
DDR4_CHANNEL_GBS = 25.6
REFRESH_SHARE = 560 / 12480  # nRFC / nREFI of host-16


def cache_levels() -> dict[str, tuple[int, int]]:
    """Size in bytes and ways of each data or unified cache, by level."""
    levels = {}
    for index in sorted(CACHES.glob("index*")):
        if (index / "type").read_text().strip() == "Instruction":
            continue
        size = int((index / "size").read_text().strip().removesuffix("K")) * 1024
        levels["l" + (index / "level").read_text().strip()] = (size, int((index / "ways_of_associativity").read_text()))
    return levels


def model_name() -> tuple[str, bool]:
    """Name of the processor, and whether it is a Zen 3."""
    info = Path("/proc/cpuinfo").read_text()

    def field(name: str) -> str:
        found = re.search(rf"^{name}\s*: (.*)$", info, re.MULTILINE)
        return found[1].strip() if found else ""

    family = field("cpu family")
    is_zen3 = field("vendor_id") == "AuthenticAMD" and family == "25"
    return f"{field('model name')} (family {family}, model {field('model')})", is_zen3


def effective_last_level(chase: dict[int, float], size: int) -> int:
    """Greatest power of two of bytes, up to the cache's size, that is served without the memory's latency.

    Virtual machines share the last level with strangers. Half way between the latencies of 2 MiB and of the largest
    working set is where it ends.
    """
    limit = (chase[2048] + chase[max(chase)]) / 2
    fits = [kib * 1024 for kib in chase if chase[kib] <= limit and kib * 1024 <= size]
    return max(fits)


def set_value(text: str, section: str, key: str, value: object, source: str) -> str:
    """Replace one value and its source."""
    start = text.index(f"\n{section}:")
    pattern = re.compile(rf'(\n  {key}: \{{value: )[^,]*(, unit: "[^"]*", source: )"[^"]*"')
    replaced, count = pattern.subn(rf'\g<1>{value}\g<2>"{source}"', text[start:], count=1)
    if count != 1:
        raise SystemExit(f"machines/host-16.yaml has no {section}.{key}")
    return text[:start] + replaced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="machine file to write")
    parser.add_argument("--probe", type=Path, default=ROOT / "build/make/sim/bench_host_probe", help="the built probe")
    options = parser.parse_args()
    print(describe())
    measured = json.loads(subprocess.run([options.probe], capture_output=True, text=True, check=True).stdout)
    print(json.dumps(measured))
    chase = {int(kib): ns for kib, ns in measured["chaseNs"].items()}
    clock, threads = round(measured["clockGHz"], 2), measured["threads"]
    name, is_zen3 = model_name()
    if not is_zen3:
        print("warning: not a Zen 3; the core's latencies and sizes below are those of Zen 3 all the same")
    by = f"measured by bench/describe_host.py on {date.today().isoformat()}, {name}"
    levels = cache_levels()

    text = (ROOT / "machines/host-16.yaml").read_text()
    text = re.sub(r"(?m)^# .*\n", "", text.split("\n", 1)[1], count=1)
    text = re.sub(r"(?m)^name: .*", f"name: {options.out.stem}", text, count=1)
    text = re.sub(r"(?m)^description: .*", f"description: {threads} cores of {name}", text, count=1)

    def put(section: str, key: str, value: object, source: str) -> None:
        nonlocal text
        text = set_value(text, section, key, value, source)

    put("core", "count", threads, "cores that this process may run on")
    put("core", "clockGHz", clock, f"dependent additions, {by}")
    for level, section in (("l1", "l1d"), ("l2", "l2")):
        put(section, "sizeBytes", levels[level][0], f"sysfs, {name}")
        put(section, "ways", levels[level][1], f"sysfs, {name}")
    last = effective_last_level(chase, levels["l3"][0])
    put("l3", "sizeBytes", last, f"of {levels['l3'][0]} B the part that a pointer chase finds, {by}")
    put("l3", "ways", levels["l3"][1], f"sysfs, {name}")
    hit = round(chase[2048] * clock)
    put("l3", "hitCycles", hit, f"pointer chase over 2 MiB, {by}")
    put("l3", "sharedBy", threads, "one last level for all of them")
    idle = chase[max(chase)]
    row_ns = (22 + 24) * 0.625 + 64 / DDR4_CHANNEL_GBS
    rest = round(max(0.0, idle - hit / clock - row_ns), 1)
    put("channel", "controllerNs", rest, f"pointer chase ({idle:.0f} ns) less the last level and a closed row, {by}")
    total = measured["readGBs"]
    channels = 1
    while channels * DDR4_CHANNEL_GBS * (1 - REFRESH_SHARE) < total:
        channels *= 2
    put("channel", "count", channels, f"as few as carry {total:.1f} GB/s, {by}")
    share = round(total / channels / (1 - REFRESH_SHARE), 2)
    put("channel", "bandwidthGBs", share, f"all threads reading: {total:.1f} GB/s without refresh, over channels, {by}")
    put("threads", "forkNs", round(measured["parallelNs"] / 2, 0), f"half of an empty parallel section, {by}")
    put("threads", "joinNs", round(measured["parallelNs"] / 2, 0), f"half of an empty parallel section, {by}")
    header = "# SPDX-License-Identifier: Apache-2.0\n"
    options.out.write_text(f"{header}# The machine that bench/describe_host.py ran on; the core is Zen 3's.\n{text}")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
