# SPDX-License-Identifier: Apache-2.0
"""Tests of the HTML page: its content, and the page as headless Chromium shows it without any network."""

import html.parser
import os
import re
import shutil
import subprocess

import pytest
from nearbank.html_roofline import points, roofs
from nearbank.report import Report
from run_document_sample import make_document, make_run

MACHINE_VALUES = [
    {"path": path, "value": value, "unit": unit, "source": "data sheet", "layer": f"machines/nmc-64.yaml:{line}"}
    for line, (path, value, unit) in enumerate(
        [
            ("core.count", "64", "cores"),
            ("core.clockGHz", "1.0", "GHz"),
            ("vault.count", "32", "vaults"),
            ("vault.bandwidthGBs", "10.0", "GB/s"),
            ("host.cores", "4", "cores"),
            ("host.clockGHz", "2.4", "GHz"),
            ("host.dramBandwidthGBs", "115.0", "GB/s"),
        ],
        start=1,
    )
]


def document(**options):
    made = make_document(**options)
    made["runs"][0]["machineValues"] = MACHINE_VALUES
    return made


class Page(html.parser.HTMLParser):
    """Collects ids, links, loaded resources and unbalanced tags."""

    VOID = {"meta", "br", "link", "img", "input", "hr"}

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.resources, self.stack, self.tags = set(), [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if "id" in attributes:
            assert attributes["id"] not in self.ids, f"id {attributes['id']} twice"
            self.ids.add(attributes["id"])
        if tag == "a":
            self.links.append(attributes.get("href"))
        self.resources += [attributes[name] for name in ("src", "srcset", "data") if name in attributes]
        if tag == "link":
            self.resources.append(attributes.get("href"))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag


@pytest.fixture(scope="module")
def text():
    return Report(document()).to_html()


def test_the_page_loads_nothing_and_its_links_lead_somewhere(text):
    page = Page(text)
    assert page.stack == []
    assert page.resources == []
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert "@import" not in text
    for link in page.links:
        assert link.startswith("#")
        assert link[1:] in page.ids, link


def test_the_page_shows_verdict_rows_and_tags(text):
    assert "two-stage places 12 of 69 nests on nmc-64" in text
    assert len(re.findall(r'<tr id="r0-n\d+">', text)) == 69
    for kind in ("measured", "simulated", "modelled", "predicted", "counted"):
        assert f'<span class="tag {kind}">{kind}</span>' in text
    assert "aten.sort" in text
    assert "machines/nmc-64.yaml:4" in text


def test_the_same_document_gives_the_same_page(text):
    assert Report(document()).to_html() == text


def test_every_nest_is_in_the_roofline(text):
    run = Report(document()).runs[0]
    found = points(run, "r0")
    assert {point.nest for point in found if point.side == "host"} == {nest["id"] for nest in run["nests"]}
    simulated = {nest["id"] for nest in run["nests"] if nest["pimTime"]}
    assert {point.nest for point in found if point.side == "pim"} == simulated
    assert text.count('data-side="host"') == 69
    assert text.count('data-side="pim"') == 12


def test_roofs_come_from_the_machine_values():
    pim, host = roofs(document()["runs"][0])
    assert (pim.side, pim.bandwidth, pim.peak) == ("pim", 320.0, 128.0)
    assert (host.side, host.bandwidth, host.peak) == ("host", 115.0, pytest.approx(19.2))
    assert roofs(make_document()["runs"][0]) == []


@pytest.mark.parametrize("layers", [6, 27, 80])
def test_pages_stay_below_a_megabyte(layers):
    made = document(layers=layers, policy="pim-only")
    assert len(Report(made).to_html().encode()) < 1_000_000


@pytest.mark.parametrize("options", [{"policy": "cpu-only"}, {"simulate": "none"}, {"layers": 0, "policy": "pim-only"}])
def test_pages_of_other_runs_are_well_formed(options):
    page = Page(Report(document(**options)).to_html())
    assert page.stack == []


def test_a_page_without_values_profiles_or_runs_is_well_formed():
    made = make_document(layers=1)
    for nest in made["runs"][0]["nests"]:
        nest["profile"] = None
        nest["source"] = nest["modulePath"] = nest["torchOp"] = None
        nest["predictedPimTime"] = None
    made["runs"][0].update(launches=[], crossings=[], eagerOps=[])
    assert Page(Report(made).to_html()).stack == []
    assert "no runs" in Report({"schema": "nearbank-run-1", "runs": []}).to_html()


def test_texts_are_escaped():
    made = document(layers=1)
    made["runs"][0]["nests"][0]["kernel"] = "<script>alert(1)</script>"
    made["runs"][0]["nests"][0]["why"]["reason"] = 'a < b & "c"'
    text = Report(made).to_html()
    assert "<script>alert" not in text
    assert "a &lt; b &amp; " in text


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


def rendered(page, profile):
    command = [
        chromium(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--virtual-time-budget=2000",
        "--window-size=1280,900",
        "--dump-dom",
        page.as_uri(),
    ]
    environment = {**os.environ, "HOME": str(profile)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=True).stdout


@pytest.mark.skipif(chromium() is None, reason="chromium is not installed (apt-get install chromium)")
def test_chromium_shows_table_and_roofline_without_network(tmp_path):
    folder = Report(document()).save(tmp_path / "out")
    # The page reports on itself: what is laid out with a size is visible, and nothing may stick out sideways.
    probe = """<script>addEventListener("load", () => {
      const size = (s) => { const b = document.querySelector(s).getBoundingClientRect(); return b.width * b.height; };
      document.querySelectorAll("#r0-placement th")[5].click();
      const first = document.querySelector("#r0-placement tbody tr").cells[5].textContent;
      document.body.insertAdjacentHTML("beforeend", `<p id="probe">table=${size("#r0-placement table") > 1e5}
        roofline=${size("#r0-roofline") > 1e5} points=${document.querySelectorAll("#r0-roofline .point").length}
        overflow=${document.documentElement.scrollWidth > innerWidth} first=${first}
        loads=${performance.getEntriesByType("resource").length}</p>`);
    });</script>"""
    page = folder / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", probe + "</body>"), encoding="utf-8")
    dom = rendered(page, tmp_path / "profile")
    report = " ".join(re.findall(r'<p id="probe">(.*?)</p>', dom, re.DOTALL)[-1].split())
    assert report == "table=true roofline=true points=81 overflow=false first=16.1 us loads=0"


@pytest.mark.parametrize(("runs", "layers"), [(12, 6), (3, 80)])
def test_pages_of_sweeps_stay_below_a_megabyte(runs, layers):
    document = make_document(layers=layers)
    document["runs"] = [make_run(layers=layers, seed=seed, machine=f"nmc-{seed}") for seed in range(runs)]
    page = Report(document).to_html()
    assert len(page.encode()) < 1e6
    assert page.count("<article") == runs and "nmc-2" in page
