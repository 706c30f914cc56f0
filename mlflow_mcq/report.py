"""How an arm is put on record in its run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pandas as pd

from mlflow_mcq import metrics, plots
from mlflow_mcq.arm import Arm
from mlflow_mcq.chance import all_nonsense
from mlflow_mcq.data_report import report_data
from mlflow_mcq.datasets.stored import PROTOCOL as STORED
from mlflow_mcq.diagnostics import Alarm, alarms_for
from mlflow_mcq.diagnostics.outputs import check_outputs, output_alarm
from mlflow_mcq.orientations import duplicate_options, fixed_options
from mlflow_mcq.pipeline import data_digest
from mlflow_mcq.places import slot_names
from mlflow_mcq.protocols import NOTA_TEXTS, reads_of
from mlflow_mcq.records import Conversation, Item, Verdict
from mlflow_mcq.run_note import NOTE, summary_note, with_section
from mlflow_mcq.settings import Settings
from mlflow_mcq.shown_judge import shown_judge, shown_url
from mlflow_mcq.statistics.flips import flip_rates
from mlflow_mcq.statistics.rows import rows_of
from mlflow_mcq.statistics.selection_bias import by_slot
from mlflow_mcq.table import first_rows, generations_frame, reading_frame, row_id
from mlflow_mcq.tracking import RunLog, capped

__all__ = ["report", "save_answers"]

_PROMPTS_SHOWN = 40
_PART = 10_000


def save_answers(arm: Arm, log: RunLog) -> None:
    """Store every answer before anybody reads it.

    A judge may fail, or a person lose patience: hours of generation must not go with it.
    """
    rows = arm.generations
    parts = (rows[start : start + _PART] for start in range(0, len(rows), _PART))
    log.parquet_parts("mcq_generations", map(generations_frame, parts))


def report(
    arm: Arm, log: RunLog, fresh: Sequence[str], link: str | None, means: bool
) -> dict[str, float]:
    """Put an arm on record.

    Args:
        arm: What was measured.
        log: The run.
        fresh: Graders whose numbers are not on record yet.
        link: Logged model that the numbers belong to.
        means: Whether to log the means here; MLflow logs them itself where it knows the
            model, and twice would be wrong.

    Returns:
        The means by logged name.
    """
    values: dict[str, float] = {}
    undefined: dict[str, str] = {}
    notes: dict[str, str] = {}
    # MLflow shows columns in the order of logging: what people look for comes first.
    for name, summary in arm.summaries.items():
        values |= {f"{name}/{key}": value for key, value in summary.values.items()}
        undefined |= {f"{name}/{key}": why for key, why in summary.undefined.items()}
        notes |= {f"{name}/{key}": note for key, note in summary.notes.items()}
    values |= arm.numbers.values
    undefined |= arm.numbers.undefined
    alarms = [*alarms_for(values), *_damage(arm), *arm.alarms]
    if means:
        log.metrics(values, model_id=link)
    by_orientation = {name: metrics.by_orientation(frame) for name, frame in arm.frames.items()}
    confusions = {} if _unseen(arm) else {n: metrics.confusion(f) for n, f in arm.frames.items()}
    slots = slot_names((g.prompt for g in arm.generations), _most_options(arm))
    for name in fresh:
        _log_steps(log, name, by_orientation[name], link)
    log.params(_params(arm))
    log.tags(_tags(arm, alarms))
    report_data(arm, log)
    _log_tables(arm, log)
    for table, frame in arm.tables.items():
        log.parquet(table, frame)
        log.table(table, capped(frame, arm.settings.table_rows))
    _log_counts(log, by_orientation, confusions, slots)
    _log_summary(log, values, undefined | notes, alarms)
    _log_bias(log, arm)
    note = with_section(log.tag(NOTE), "mcq", summary_note(values, alarms))
    log.tags({NOTE: note})
    _log_pictures(log, by_orientation, confusions, slots, _bands(arm))
    log.text("mcq_prompts.txt", _prompts_text(arm))
    log.text("mcq_settings.json", json.dumps(_settings_shown(arm), indent=2, ensure_ascii=False))
    log.tags({"mcq.status": "finished"})
    return values


def _damage(arm: Arm) -> list[Alarm]:
    """The alarm over the answers themselves, if they are damaged."""
    grades = arm.grades.get("judge") or next(iter(arm.grades.values()), ())
    unread = {row_id(one.generation) for one in grades if one.verdict is Verdict.OTHER}
    # A prompt that was never asked has no answer, and an alarm of its own.
    asked = [one for one in arm.answered if not one.reply.too_long]
    ids = [row_id(one) for one in asked]
    check = check_outputs(
        [one.text for one in asked],
        [_as_text(one.prompt.content) for one in asked],
        [one.reply.cut and name in unread for one, name in zip(asked, ids, strict=True)],
    )
    alarm = output_alarm(check, ids)
    return [] if alarm is None else [alarm]


def _log_steps(log: RunLog, grader: str, table: pd.DataFrame, link: str | None) -> None:
    for row in table.to_dict("records"):
        numbers = {
            f"{grader}_by_orientation/{name}": row[name]
            for name in ("accuracy", "accuracy_decided", "other_rate")
            if pd.notna(row[name])
        }
        log.metrics(numbers, step=int(row["orientation"]), model_id=link)


def _params(arm: Arm) -> dict[str, object]:
    protocol = arm.generations[0].prompt.protocol
    params: dict[str, object] = {"mcq.protocol": protocol}
    if any(item.also_right for item in arm.items):  # it says nothing about other data
        params["mcq.several_gold"] = arm.settings.several_gold
    # How stored answers were made is not known here: no setting of ours describes it.
    if protocol != STORED:
        settings = arm.settings
        params |= {
            "mcq.orientations": settings.orientations,
            "mcq.repeats": settings.repeats,
            "mcq.max_new_tokens": settings.max_new_tokens,
            "mcq.temperature": settings.temperature,
            "mcq.top_p": settings.top_p,
            "mcq.top_k": settings.top_k,
            "mcq.seed": settings.seed,
        }
        params |= _page_params(settings) | arm.model
    if arm.judge is not None:
        judge = arm.judge.settings
        params |= {
            "mcq.judge_model": judge.model,
            "mcq.judge_shape": judge.shape,
            "mcq.judge_fingerprint": arm.judge.fingerprint,
        }
    return params


def _page_params(settings: Settings) -> dict[str, object]:
    """The settings that the protocol of this arm looks at."""
    read = reads_of(settings.protocol)
    names = ("labels", "language", "mark", "nota_share", "few_shot")
    found = {f"mcq.{name}": getattr(settings, name) for name in names if name in read}
    shots = found.pop("mcq.few_shot", None)
    if settings.few_shot is not None:
        told = settings.few_shot.model_dump(exclude={"rows", "path"}, exclude_none=True)
        source = settings.few_shot.path or f"{len(settings.few_shot.rows)} rows"
        shots = ", ".join([str(source), *(f"{name}: {value}" for name, value in told.items())])
    return found | ({"mcq.few_shot": shots} if shots else {})


def _prompts_digest(arm: Arm) -> str:
    """Twelve hex digits over what was asked: examples, wording and orders included.

    The settings name a file of examples and a protocol; what stands in them may change.
    """
    digest = hashlib.sha256()
    for generation in arm.generations:
        asked = f"{generation.key}\n{_as_text(generation.prompt.content)}\n"
        digest.update(asked.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


def _is_pinned(item: Item) -> bool:
    return bool(fixed_options([text for text in item.options if text not in NOTA_TEXTS]))


def _tags(arm: Arm, alarms: Sequence[Alarm]) -> dict[str, object]:
    items = arm.items
    tags: dict[str, object] = {
        "mcq.status": "logging",  # a run killed from here on must not pass for a whole one
        "mcq.data_digest": data_digest(items),
        "mcq.engine": arm.generations[0].engine,
        "mcq.settings": arm.settings.fingerprint,
        "mcq.prompts_digest": _prompts_digest(arm),
        "mcq.alarms": ", ".join(alarm.name for alarm in alarms) or "none",
        "mcq.items_with_fixed_options": sum(map(_is_pinned, items)),
        "mcq.items_with_several_gold": sum(1 for i in items if i.also_right),
        "mcq.items_with_equal_options": sum(1 for i in items if duplicate_options(i.options)),
    }
    if arm.road:
        tags["mcq.engine.road"] = arm.road
    if arm.judge is not None:
        tags["mcq.judge_fingerprint"] = arm.judge.fingerprint
        tags["mcq.judge_base_url"] = shown_url(arm.judge.settings.base_url)
    return tags


def _log_tables(arm: Arm, log: RunLog) -> None:
    rows = arm.settings.table_rows
    log.parquet("mcq_grades", pd.concat(arm.frames.values(), ignore_index=True))
    telling = _telling_rows(arm.frames)
    # Chosen before any table is made of them: of a million rows a browser bears a thousand.
    shown = generations_frame(first_rows(arm.generations, rows, telling))
    log.table("mcq_generations", shown.drop(columns=["token_ids"]))
    # The judge first: its rows are what a reader audits.
    order = sorted(arm.grades, key=lambda name: name != "judge")
    grades = (one for name in order for one in arm.grades[name])
    audited = first_rows(grades, rows, telling)
    read = {one.generation.key: one.generation for one in audited}
    log.table("mcq_grades", reading_frame(audited, generations_frame(read.values())))


def _log_counts(
    log: RunLog,
    by_orientation: dict[str, pd.DataFrame],
    confusions: dict[str, pd.DataFrame],
    slots: Sequence[str],
) -> None:
    log.table(
        "mcq_by_orientation",
        pd.concat([table.assign(grader=name) for name, table in by_orientation.items()]),
    )
    if confusions:
        rows = [_confusion_rows(table, name, slots) for name, table in confusions.items()]
        log.table("mcq_confusion", pd.concat(rows))


def _log_bias(log: RunLog, arm: Arm) -> None:
    """Picks by slot, and how often the option changes between two orientations."""
    graded = {name: rows_of(frame).graded for name, frame in arm.frames.items()}
    flips = [flip_rates(rows).assign(grader=name) for name, rows in graded.items()]
    log.table("mcq_flips", pd.concat(flips))
    if not _unseen(arm):
        slots = [by_slot(rows).assign(grader=name) for name, rows in graded.items()]
        log.table("mcq_by_slot", pd.concat(slots))


def _unseen(arm: Arm) -> bool:
    """Whether no option was shown: then there is no slot to count by."""
    return all(generation.prompt.unseen for generation in arm.generations)


def _most_options(arm: Arm) -> int:
    return max(len(generation.prompt.item.options) for generation in arm.generations)


def _telling_rows(frames: dict[str, pd.DataFrame]) -> set[str]:
    """Rows that graders read differently, or that lack a verdict."""
    readings = pd.concat(frames.values())
    said = readings["verdict"].fillna("error") + "/" + readings["choices"].astype(str)
    differ = said.groupby(readings["row_id"]).nunique() > 1
    return set(differ[differ].index) | set(readings.loc[readings["verdict"].isna(), "row_id"])


def _confusion_rows(table: pd.DataFrame, grader: str, letters: Sequence[str]) -> pd.DataFrame:
    long = table.reset_index().melt("gold_slot", var_name="picked", value_name="n_rows")
    return pd.DataFrame(
        {
            "grader": grader,
            "gold": [letters[slot] for slot in long["gold_slot"]],
            "picked": [letters[p] if isinstance(p, int) else str(p) for p in long["picked"]],
            "n_rows": long["n_rows"],
        }
    )


def _log_summary(
    log: RunLog, values: dict[str, float], notes: dict[str, str], alarms: Sequence[Alarm]
) -> None:
    """The numbers with what is to be known of them, then why others do not exist."""
    rows: list[dict[str, object]] = [
        {"metric": name, "value": values.get(name), "note": notes.get(name, "")}
        for name in {**values, **notes}
    ]
    log.table("mcq_summary", pd.DataFrame(rows, columns=["metric", "value", "note"]))
    columns = ["name", "rule", "found", "next_step"]
    found = [{name: getattr(alarm, name) for name in columns} for alarm in alarms]
    log.table("mcq_alarms", pd.DataFrame(found, columns=columns))


def _log_pictures(
    log: RunLog,
    by_orientation: dict[str, pd.DataFrame],
    confusions: dict[str, pd.DataFrame],
    slots: Sequence[str],
    bands: dict[str, tuple[float, float]],
) -> None:
    for name, table in confusions.items():
        if not table.to_numpy().sum():  # every item has several right options
            continue
        title = f"Gold slot by picked slot, read by {name}"
        figure = plots.confusion_figure(table, title, slots[: len(table)])
        log.figure(f"mcq_confusion_{name}", figure)
    title = "Accuracy by orientation" + (", on nonsense" if bands else "")
    figure = plots.orientation_figure(by_orientation, title, bands)
    log.figure("mcq_by_orientation_chart", figure)


def _bands(arm: Arm) -> dict[str, tuple[float, float]]:
    """What guessing comes to by grader, where no item has an answer that can be known."""
    ends = {
        name: (one.values.get("chance_low"), one.values.get("chance_high"))
        for name, one in arm.summaries.items()
        if all_nonsense(arm.items)
    }
    return {
        name: (low, high)
        for name, (low, high) in ends.items()
        if low is not None and high is not None
    }


def _prompts_text(arm: Arm) -> str:
    """The exact prompts of the first rows; Parquet holds all of them."""
    parts = []
    for generation in arm.generations[:_PROMPTS_SHOWN]:
        sent = generation.reply.sent or _as_text(generation.prompt.content)
        parts.append(f"===== {row_id(generation)}: sent to the model =====\n{sent}")
    if arm.judge is not None:
        asked = [g.generation for g in arm.grades[arm.judge.name] if g.judge]
        for generation in asked[:3]:
            text = _as_text(arm.judge.conversation(generation))
            parts.append(f"===== {row_id(generation)}: sent to the judge =====\n{text}")
    return "\n\n".join(parts)


def _as_text(content: Conversation) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(f"[{message.role}]\n{message.content}" for message in content)


def _settings_shown(arm: Arm) -> dict[str, object]:
    shown = arm.settings.model_dump(mode="json")
    if arm.judge is not None:
        judge = shown_judge(arm.judge.settings)
        shown["judge"] = judge | {"fingerprint": arm.judge.fingerprint}
    return shown
