"""Arms of known truth through the whole of `compare`, on a real tracking store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import mlflow
import pandas as pd
import pytest
from fake_server import FakeServer
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from scripted_arms import (
    Model,
    changed,
    draw,
    explain,
    first_slot,
    items,
    knowing,
    reading_judge,
    refuse,
)

import mlflow_mcq
from mlflow_mcq.__main__ import main
from mlflow_mcq.comparison.compare import Comparison
from mlflow_mcq.errors import DataError, SettingsError
from mlflow_mcq.trace_search import in_experiment

N_ITEMS = 160
ARMS: dict[str, Model] = {
    "base": knowing(0.5, "base"),
    "nothing": knowing(0.5, "nothing"),
    "better": knowing(0.85, "better"),
    "first slot": changed(knowing(0.6, "slot"), 0.6, "pulled", first_slot),
    "refuses": changed(knowing(0.5, "quiet"), 0.3, "quiet", refuse),
    "explains": changed(knowing(0.5, "wordy"), 0.4, "wordy", explain),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A run of each arm, by name, in an experiment of their own."""
    folder = tmp_path_factory.mktemp("comparison")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("arms", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("arms")
    server = FakeServer(reading_judge)
    found = {name: arm_run(name, model, server) for name, model in ARMS.items()}
    found["other judge"] = arm_run("other judge", ARMS["base"], server, max_tokens=77)
    yield found
    server.close()
    mlflow.set_tracking_uri(before)


def arm_run(name: str, model: Model, server: FakeServer, n: int = N_ITEMS, **judge: int) -> str:
    who = {"model": "scripted", "base_url": server.url, "exam_replies": 0, **judge}
    with mlflow.start_run(run_name=name, description=f"words of {name}"):
        result = mlflow_mcq.evaluate(
            model, items(n), judge=who, orientations="rotations", cache="off", lint=False
        )
    return str(result.run_id)


@pytest.fixture(scope="module")
def compared(runs: dict[str, str]) -> Comparison:
    return mlflow_mcq.compare([runs[name] for name in ARMS], trace_rows=10)


def tags(run_id: str) -> dict[str, str]:
    return dict(MlflowClient().get_run(run_id).data.tags)


def artifact(run_id: str, file: str, folder: Path) -> str:
    path = MlflowClient().download_artifacts(run_id, file, str(folder))
    return Path(path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arm", "alarms", "verdict"),
    [
        pytest.param("nothing", (), "no difference shown", id="nothing"),
        pytest.param("better", (), ": better.", id="a real effect"),
        pytest.param("first slot", ("orientation_sign_change",), "see the alarms", id="position"),
        pytest.param("refuses", ("other_rate_up",), "see the alarms", id="refusals"),
        pytest.param("explains", ("suspected_parser_artifact",), "no difference", id="parser"),
    ],
)
def test_arms_of_known_truth_get_the_right_alarms_and_no_others(
    compared: Comparison, arm: str, alarms: tuple[str, ...], verdict: str
) -> None:
    assert compared.alarms[arm] == alarms
    assert verdict in compared.headlines[arm]
    table = compared.tables["alarms"]
    assert tuple(table.loc[(table["arm"] == arm) & (table["baseline"] != ""), "alarm"]) == alarms


def test_alarms_of_single_arms_are_shown_beside_those_of_pairs(compared: Comparison) -> None:
    alone = compared.tables["alarms"].query("baseline == ''")
    assert list(zip(alone["alarm"], alone["arm"], strict=True)) == [
        ("regex_judge_disagreement", "explains")
    ]
    assert tags(compared.run_id)["mcq.alarms_of_arms"] == "regex_judge_disagreement"
    assert {arm: fired for arm, fired in compared.alarms_of_arms.items() if fired} == {
        "explains": ("regex_judge_disagreement",)
    }
    assert compared.alarms_of_arms["base"] == ()


def test_the_deltas_are_those_of_the_rows(compared: Comparison, runs: dict[str, str]) -> None:
    metrics = {n: MlflowClient().get_run(runs[n]).data.metrics for n in ("base", "better")}
    shift = metrics["better"]["judge/accuracy"] - metrics["base"]["judge/accuracy"]
    table = compared.tables["deltas"]
    row = table.query("arm == 'better' and read_by == 'judge' and part == 'all'").iloc[0]
    assert row["metric"] == "accuracy_shift"
    assert row["shift"] == pytest.approx(shift)
    assert row["value_arm"] == pytest.approx(metrics["better"]["judge/accuracy"])
    assert (row["n_items"], row["n_rows"]) == (N_ITEMS, 4 * N_ITEMS)
    assert row["low"] < shift < row["high"]
    assert row["p_value"] <= row["p_holm"] < 0.01
    assert compared.metrics["accuracy_shift/better"] == pytest.approx(shift)
    parts = table.query("arm == 'better' and read_by == 'judge'")["part"]
    assert set(parts) == {"all"} | {f"orientation {k}" for k in range(4)} | {
        f"gold in slot {k}" for k in range(1, 5)
    }


def test_everything_lands_in_one_run(compared: Comparison) -> None:
    files = {file.path for file in MlflowClient().list_artifacts(compared.run_id)}
    assert files == {
        "mcq_deltas.json", "mcq_arms_compared.json", "mcq_alarms.json", "mcq_differing_rows.json",
        "mcq_differing_rows.parquet", "mcq_transitions.json", "mcq_verdicts.json",
        "mcq_by_orientation.json", "mcq_by_slot.json", "mcq_chosen_shifts.json", "mcq_forest.png",
        "mcq_accuracy_by_orientation.png", "mcq_verdict_shares.png", "mcq_row_transitions.png",
        "mcq_pick_rates.png", "mcq_confusions.png", "mcq_report.html",
    }  # fmt: skip


def test_links_lead_both_ways_and_a_users_words_stay(
    compared: Comparison, runs: dict[str, str]
) -> None:
    mine = tags(compared.run_id)
    assert mine["mcq.role"] == "comparison"
    assert mine["mcq.baseline"] == runs["base"]
    assert mine["mcq.arms"].split(",") == [runs[name] for name in ARMS]
    for arm in ARMS:
        theirs = tags(runs[arm])
        assert compared.run_id in theirs["mcq.compared_in"].split(",")
        note = theirs["mlflow.note.content"]
        assert note.startswith(f"words of {arm}")
        assert "| judge &nbsp; |" in note
        assert compared.run_id in note


def test_differing_rows_show_every_kind_of_change_first(compared: Comparison) -> None:
    table = compared.tables["differing_rows"]
    kinds = set(table["change"])
    assert {"right to wrong", "wrong to right", "another wrong option"} <= kinds
    assert set(table["change"].head(len(kinds))) == kinds
    said = table[[f"verdict: {name}" for name in ARMS]]
    letters = table[[f"letter: {name}" for name in ARMS]]
    assert ((said.nunique(axis=1) > 1) | (letters.nunique(axis=1) > 1)).all()
    assert table["row_id"].is_unique


def test_transitions_and_verdicts_count_every_row(compared: Comparison) -> None:
    transitions = compared.tables["transitions"]
    assert set(transitions.groupby("arm")["n_rows"].sum()) == {4 * N_ITEMS}
    verdicts = compared.tables["verdicts"].set_index("arm")
    assert set(verdicts.sum(axis=1)) == {4 * N_ITEMS}
    assert verdicts.loc["refuses", "OTHER"] > 0.2 * 4 * N_ITEMS


# --- rows side by side --------------------------------------------------------------


def traces_of(run_id: str) -> list[mlflow.entities.Trace]:
    run = MlflowClient().get_run(run_id)
    where = f"metadata.`mlflow.sourceRun` = '{run_id}'"
    place = in_experiment(mlflow.search_traces, run.info.experiment_id)
    return list(mlflow.search_traces(**place, filter_string=where, return_type="list"))


def test_the_same_rows_of_every_arm_are_traces_with_their_verdicts(
    compared: Comparison, runs: dict[str, str]
) -> None:
    arms = {name: traces_of(runs[name]) for name in ("base", "refuses")}
    asked = {name: {t.data.request for t in traces} for name, traces in arms.items()}
    assert len(arms["base"]) == len(asked["base"]) == 10
    assert asked["base"] == asked["refuses"]
    values = [{a.name: a.value for a in trace.info.assessments} for trace in arms["refuses"]]
    assert all(v["correct"] == (v["verdict"] == "CORRECT") for v in values)
    assert all(v["other"] == (v["verdict"] == "OTHER") for v in values)
    assert all(("slot" in v) != v["other"] for v in values)
    assert {a.source.source_id for t in arms["base"] for a in t.info.assessments} == {"scripted"}


def test_a_second_comparison_shows_no_row_twice(compared: Comparison, runs: dict[str, str]) -> None:
    mlflow_mcq.compare([runs[name] for name in ARMS], trace_rows=10)
    assert len(traces_of(runs["base"])) == 10
    assert traces_of(runs["other judge"]) == []


# --- what is refused ----------------------------------------------------------------


def test_different_judges_are_refused_unless_forced(runs: dict[str, str], tmp_path: Path) -> None:
    two = [runs["base"], runs["other judge"]]
    with pytest.raises(SettingsError, match="different judges"):
        mlflow_mcq.compare(two, trace_rows=0)
    found = mlflow_mcq.compare(two, force=True, trace_rows=0)
    assert found.alarms["other judge"] == ("judge_mismatch",)
    assert tags(found.run_id)["mcq.forced"] == "judge_mismatch"
    assert "This comparison was forced" in artifact(found.run_id, "mcq_report.html", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param({}, "either runs or an experiment", id="nothing"),
        pytest.param({"runs": ["a"], "experiment": "arms"}, "either runs", id="both"),
        pytest.param(
            {"runs": ["f" * 32, "e" * 32]},
            r"no such run.*Newest evaluations: [0-9a-f]{32} \(",
            id="unknown run",
        ),
        pytest.param({"experiment": "amrs"}, 'Did you mean "arms"', id="unknown experiment"),
        pytest.param(
            {"experiment": "arms", "baseline": "x", "force": True}, "one of", id="baseline"
        ),
        pytest.param({"experiment": "arms", "trace_rows": -1}, "0 or more", id="trace rows"),
        pytest.param(
            {"experiment": "arms", "filter": "attributes.run_name = 'base'"},
            "at least two",
            id="one arm",
        ),
    ],
)
def test_what_cannot_be_compared(
    runs: dict[str, str], arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        mlflow_mcq.compare(**arguments)  # type: ignore[arg-type]


def test_the_same_run_twice_and_arms_without_a_common_row(
    runs: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="different"):
        mlflow_mcq.compare([runs["base"], runs["base"]])
    other = items(2).assign(id=["x0", "x1"])
    results = [
        mlflow_mcq.evaluate(ARMS["base"], data, evaluators="mcq_regex", lint=False, cache="off")
        for data in (items(2), other)
    ]
    with pytest.raises(DataError, match="share no graded row"):
        mlflow_mcq.compare(results)


# --- the gate -----------------------------------------------------------------------


def test_the_gate_closes_on_a_sure_loss_only(compared: Comparison) -> None:
    assert compared.metrics["shown_loss/nothing"] == 0.0
    loss = compared.metrics["shown_loss/refuses"]
    assert loss == pytest.approx(-compared.metrics["accuracy_shift/refuses"])
    thresholds = mlflow_mcq.loss_thresholds(compared, by=0.99)
    assert set(thresholds) == {f"shown_loss/{name}" for name in ARMS if name != "base"}
    mlflow_mcq.fail_if_worse(compared, by=0.99)
    with pytest.raises(MlflowException, match=r"refuses: 0\.\d{3}"):
        mlflow_mcq.fail_if_worse(compared, by=0.02)
    with pytest.raises(SettingsError, match="fraction"):
        mlflow_mcq.fail_if_worse(compared, by=2)


def test_the_command_line_compares_and_fails_like_the_gate(
    runs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    two = [runs["base"], runs["refuses"], "--trace-rows", "0"]
    assert main(["compare", *two]) == 0
    shown = capsys.readouterr().out
    assert "refuses against base: accuracy -" in shown
    assert "read by judge" in shown
    assert main(["compare", "--runs", ",".join(two[:2]), "--baseline", "refuses",
                 "--trace-rows", "0", "--fail-if-worse", "0.02"]) == 0  # fmt: skip
    assert main(["compare", *two, "--fail-if-worse", "0.02"]) == 1
    assert main(["compare", *two, "--force", "perhaps"]) == 2


# --- the report ---------------------------------------------------------------------


class _Page(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "data")]


def test_the_report_needs_nothing_and_says_it_all(compared: Comparison, tmp_path: Path) -> None:
    text = artifact(compared.run_id, "mcq_report.html", tmp_path)
    page = _Page(text)
    assert not page.names & {"script", "iframe", "link", "object", "embed"}
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert text.count("<svg") == 6
    for line in (*compared.headlines.values(), "Is it position bias?", "other_rate_up"):
        assert line.replace("<", "&lt;") in text


EVIL = "</pre><script>alert(1)</script>{{ 7*7 }}{0.__class__} & <b>"


def test_what_a_model_says_is_shown_and_never_run(runs: dict[str, str], tmp_path: Path) -> None:
    def evil(frame: pd.DataFrame) -> list[str]:
        return [EVIL + p[-1:] if draw("evil", p) < 0.5 else "A" for p in frame["prompt"]]

    results = []
    for name, model in (("<i>plain</i>|$x$", ARMS["base"]), (EVIL, evil)):
        with mlflow.start_run(run_name=name):
            results.append(
                mlflow_mcq.evaluate(
                    model, items(4), evaluators="mcq_regex", lint=False, cache="off"
                )
            )
    found = mlflow_mcq.compare(results, trace_rows=2)
    text = artifact(found.run_id, "mcq_report.html", tmp_path)
    assert "<script" not in text
    assert "<i>plain" not in text
    assert "{{ 7*7 }}{0.__class__}" in text
    assert "&lt;script&gt;alert(1)" in text
    note = tags(found.run_id)["mlflow.note.content"]
    assert "<script" not in note
    assert "plain&lt;/i&gt;\\|$x$ &nbsp; |" in note


def test_a_report_of_ten_thousand_rows_and_long_answers_stays_small(
    compared: Comparison,
) -> None:
    from mlflow_mcq.comparison.page import _rows

    names = [f"arm {k}" for k in range(20)]
    said = {
        f"{w}: {n}": "x" * 5_000 for n in names for w in ("verdict", "letter", "answer", "reason")
    }
    row = {
        "row_id": "q",
        "change": "c",
        "question": "q" * 9_000,
        "options_shown": "o",
        "gold_letter": None,
        **said,
    }
    table = pd.DataFrame([row] * 10_000)
    assert 0 < len(json.dumps(_rows(table, names))) < 4_000_000


def test_the_result_of_an_evaluation_goes_through_mlflows_own_gate(runs: dict[str, str]) -> None:
    result = mlflow_mcq.evaluate(
        lambda frame: ["A"] * len(frame), items(4), evaluators="mcq_regex", lint=False, cache="off"
    )
    assert result.metrics["regex_bounded/accuracy"] == 0.25

    def gate(least: float) -> None:
        wanted = mlflow.models.MetricThreshold(threshold=least, greater_is_better=True)
        mlflow.validate_evaluation_results({"regex_bounded/accuracy": wanted}, result)

    gate(0.2)
    with pytest.raises(MlflowException, match="regex_bounded/accuracy"):
        gate(0.3)
