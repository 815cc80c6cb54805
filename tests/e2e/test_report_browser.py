"""The report in a real headless browser: tables and figures stand there, nothing is fetched, nothing errs."""

import json
import shutil
import struct
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from experiments import sweep
from experiments.report import write_report

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
]
LOOK = """
<pre id="seen"></pre>
<script>
const errors = [];
addEventListener("error", event => errors.push(String(event.message)), true);
addEventListener("load", () => {
  const box = node => { const r = node.getBoundingClientRect(); return [r.width, r.height]; };
  document.getElementById("seen").textContent = JSON.stringify({
    tables: [...document.querySelectorAll("table")].map(box),
    figures: [...document.querySelectorAll("figure svg")].map(box),
    fetched: performance.getEntriesByType("resource").map(entry => entry.name),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    errors,
  });
});
</script>
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)"),
]


class Seen(HTMLParser):
    """Collect the text of the element that the page wrote its findings into."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = dict(attrs).get("id") == "seen"

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


def browse(page: Path, profile: Path, *what: str) -> "subprocess.CompletedProcess[str]":
    """Open a page with a new profile. Every name but the page's own resolves to nothing."""
    command = [
        str(BROWSER),
        *FLAGS,
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--window-size=1280,2600",
        "--enable-logging=stderr",
        *what,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    prompts = folder / "prompts.txt"
    prompts.write_text("What is truth?\nWhy does doubt matter?\nzzxqv blorp\n", encoding="utf-8")
    assert sweep.run(["-m", "identity=glob(*)", f"prompts={prompts}", f"hydra.sweep.dir={folder / 'run'}"]) == 0
    return write_report(folder / "run")


def test_tables_and_figures_are_rendered_and_nothing_is_fetched(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "</body>" in text
    observed = tmp_path / "observed.html"
    observed.write_text(text.replace("</body>", LOOK + "</body>"), encoding="utf-8")
    result = browse(observed, tmp_path / "profile", "--dump-dom")
    parser = Seen()
    parser.feed(result.stdout)
    seen = json.loads(parser.text)
    assert len(seen["tables"]) >= 5
    assert len(seen["figures"]) == 4
    for width, height in [*seen["tables"], *seen["figures"]]:
        assert width > 200
        assert height > 20
    for width, height in seen["figures"]:
        assert width <= 1120
        assert height > 100
    assert seen["fetched"] == []
    assert seen["errors"] == []
    assert seen["overflow"] == 0, "the page is wider than its window"
    assert "CONSOLE" not in result.stderr, result.stderr


def test_the_looking_glass_sees_a_fetch_an_error_and_a_missing_figure(page: Path, tmp_path: Path) -> None:
    planted = '<img src="http://example.invalid/x.png"><script>console.error("planted")</script>'
    observed = tmp_path / "observed.html"
    text = page.read_text(encoding="utf-8").replace("<svg ", "<svg hidden style='display:none' ")
    observed.write_text(text.replace("</body>", planted + LOOK + "</body>"), encoding="utf-8")
    result = browse(observed, tmp_path / "profile", "--dump-dom")
    parser = Seen()
    parser.feed(result.stdout)
    seen = json.loads(parser.text)
    assert seen["fetched"] == ["http://example.invalid/x.png"]
    assert [0, 0] in seen["figures"]
    assert "CONSOLE" in result.stderr


def test_a_screenshot_is_a_picture_with_something_on_it(page: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    browse(page, tmp_path / "profile", f"--screenshot={picture}")
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1280, 2600)
    # A blank page of this size compresses to some ten kilobytes.
    assert len(data) > 60_000
