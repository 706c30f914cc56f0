"""What people see: a comparison in MLflow's own pages, in a real browser.

Screenshots of every page stay in the test's temporary folder.
"""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest
from chromium import CHROMIUM, FLAGS
from fake_server import FakeServer
from mlflow import MlflowClient
from scripted_arms import changed, explain, first_slot, items, knowing, reading_judge
from tracking_server import serving

import mlflow_mcq
from mlflow_mcq.comparison.compare import Comparison

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH (apt install chromium)"),
]

N_ITEMS = 60
ARMS = {
    "base": knowing(0.5, "base"),
    "first-slot": changed(knowing(0.6, "slot"), 0.7, "pulled", first_slot),
    "explains": changed(knowing(0.5, "wordy"), 0.4, "wordy", explain),
}
# Time of the page, not of the clock: it stands still while an answer is awaited, so a slow
# machine sees the same page as a fast one. Later looks are for work that starts late.
BUDGETS_MS = (15_000, 40_000, 90_000)


class Site:
    """A running MLflow server with a comparison in it.

    Attributes:
        url: Of the server.
        comparison: What it holds.
        runs: Run ids by arm.
        experiment: Id of their experiment.
        folder: Where screenshots go.
    """

    def __init__(self, url: str, comparison: Comparison, runs: dict[str, str], folder: Path):
        self.url = url
        self.comparison = comparison
        self.runs = runs
        self.experiment = MlflowClient().get_run(comparison.run_id).info.experiment_id
        self.folder = folder

    def look(self, place: str, name: str, wanted: str, size: str = "1500,1000") -> str:
        """The visible text of a page, once it holds what is waited for; with a picture."""
        url = place if "://" in place else f"{self.url}/#{place}"
        text = ""
        for budget in BUDGETS_MS:
            flags = [f"--virtual-time-budget={budget}", f"--window-size={size}"]
            text = visible(self._chromium(*flags, "--dump-dom", url))
            if wanted in text:
                self._chromium(*flags, f"--screenshot={self.folder / name}.png", url)
                return text
        self._chromium(*flags, f"--screenshot={self.folder / name}.png", url)
        raise AssertionError(f"{wanted!r} is not on {url}; see {self.folder / name}.png\n{text}")

    def _chromium(self, *arguments: str) -> str:
        own = f"--user-data-dir={self.folder / 'profile'}"
        done = subprocess.run(
            [str(CHROMIUM), *FLAGS, own, *arguments],
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        return done.stdout


def visible(page: str) -> str:
    """What a reader of a page sees, spaces collapsed."""
    page = re.sub(r"<(script|style|noscript)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("browser")
    before, store = mlflow.get_tracking_uri(), f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(store)
    mlflow.create_experiment("arms", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("arms")
    judge = FakeServer(reading_judge)
    runs = {}
    for name, model in ARMS.items():
        who = {"model": "scripted", "base_url": judge.url, "exam_replies": 0}
        with mlflow.start_run(run_name=name):
            done = mlflow_mcq.evaluate(
                model, items(N_ITEMS), judge=who, orientations="rotations", cache="off"
            )
        runs[name] = str(done.run_id)
    found = mlflow_mcq.compare(list(runs.values()), trace_rows=12)
    with serving(store, folder) as url:
        yield Site(url, found, runs, folder)
    judge.close()
    mlflow.set_tracking_uri(before)


def test_the_runs_table_has_a_row_an_arm(site: Site) -> None:
    text = site.look(f"/experiments/{site.experiment}/runs", "runs", "comparison with base")
    assert all(name in text for name in ARMS)


def test_the_comparison_says_in_its_description_what_was_found(site: Site) -> None:
    place = f"/experiments/{site.experiment}/runs/{site.comparison.run_id}"
    text = site.look(place, "comparison", "Description")
    for line in site.comparison.headlines.values():
        assert line in text
    assert "orientation_sign_change" in text
    assert "begin mcq" not in text  # the marks around our part are not for readers
    assert "**" not in text


def test_an_arm_says_in_its_description_what_it_measured(site: Site) -> None:
    place = f"/experiments/{site.experiment}/runs/{site.runs['explains']}"
    text = site.look(place, "arm", "Description")
    assert "regex_judge_disagreement" in text
    assert "Compared in comparison with base" in text


def test_the_compare_page_names_arms_and_their_numbers(site: Site) -> None:
    ids = ",".join(f"%22{run_id}%22" for run_id in site.runs.values())
    place = f"/compare-runs?runs=[{ids}]&experiments=[%22{site.experiment}%22]"
    # Parameters and metrics stand by the alphabet, in boxes of their own that scroll.
    text = site.look(place, "compare", "data/n_items", size="1500,2400")
    assert all(name in text for name in ARMS)
    assert "mcq.judge_fingerprint" in text


def test_arms_stand_row_by_row_in_evaluation_runs(site: Site) -> None:
    one, other = site.runs["first-slot"], site.runs["base"]
    place = f"/experiments/{site.experiment}/evaluation-runs"
    place += f"?selectedRunUuid={one}&compareToRunUuid={other}"
    text = site.look(place, "rows", "Which number ends item", size="2200,1000")
    assert re.search("Comparing .{0,20}first-slot .{0,20}to .{0,20}base", text), text
    assert "12 of 12" in text
    for assessment in ("correct", "verdict"):
        assert assessment in text


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        pytest.param("mcq_alarms.json", "orientation_sign_change", id="alarms"),
        pytest.param("mcq_deltas.json", "accuracy_shift", id="deltas"),
        pytest.param("mcq_differing_rows.json", "right to wrong", id="differing rows"),
    ],
)
def test_the_artifact_page_shows_tables(site: Site, file: str, wanted: str) -> None:
    place = f"/experiments/{site.experiment}/runs/{site.comparison.run_id}/artifacts/{file}"
    text = site.look(place, file.removesuffix(".json"), wanted)
    assert "mcq_report.html" in text


def test_an_auditor_sees_disagreements_first(site: Site) -> None:
    run = site.runs["explains"]
    place = f"/experiments/{site.experiment}/runs/{run}/artifacts/mcq_grades.json"
    text = site.look(place, "grades", "judge_reply", size="2400,1000")
    row = text.index("/o")
    assert "Not " in text[row : row + 400]  # an answer that begins by ruling a letter out


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_opens_by_itself(site: Site, scheme: str, tmp_path: Path) -> None:
    path = MlflowClient().download_artifacts(
        site.comparison.run_id, "mcq_report.html", str(tmp_path)
    )
    shown = Path(path)
    if scheme == "dark":  # what a dark desktop would choose
        text = shown.read_text(encoding="utf-8")
        shown = tmp_path / "dark.html"
        shown.write_text(text.replace("(prefers-color-scheme: dark)", "all"), encoding="utf-8")
    text = site.look(shown.as_uri(), f"report_{scheme}", "Is it position bias?", size="1240,5200")
    for line in site.comparison.headlines.values():
        assert line in text
    assert "Picks by slot" in text  # pictures are drawn, with their texts as text
    assert "Rows on which the arms differ" in text
