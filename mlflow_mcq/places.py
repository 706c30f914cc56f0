"""Places and labels: what can be said of each, and where there is nothing to be said.

A model may prefer a place (the top) or a label (the letter A). While A always stands at the
top nobody can tell which; where labels are shuffled the two come apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mlflow_mcq.metrics import MOST_SLOT_METRICS, Summary
from mlflow_mcq.orientations import letters_for
from mlflow_mcq.records import Grade, Prompt

__all__ = ["label_picks", "slot_names", "without_places"]

_NOTHING_SHOWN = "undefined: the protocol shows no options, so nothing has a place"
_OF_PLACES = (
    "pick_rate_slot_", "consistency", "pair_consistency", "circular_accuracy", "accuracy_spread",
    "accuracy_variation", "slot_shift", "choice_kl", "recall_std",
)  # fmt: skip


def label_picks(grades: Iterable[Grade]) -> Summary:
    """How often each label is picked, where labels are shuffled.

    ``pick_rate_label_X``: rows that picked label X / rows with a known pick on whose page X
    stood. In [0, 1]. A model without a taste in labels picks each as often as the others,
    since they are drawn independently of what stands beside them; ``pick_rate_slot_k``
    beside it is the taste in places. At most ten labels, and those that name a metric.

    Returns:
        Nothing where every slot has one and the same label in all rows.

    Example:
        >>> label_picks([]).values
        {}
    """
    known = [grade for grade in grades if grade.slot is not None]
    rows = [(grade.generation.prompt.labels, grade.slot) for grade in known]
    if not _come_apart(labels for labels, _ in rows):
        return Summary()
    shown = Counter(label for labels, _ in rows for label in labels)
    picked = Counter(labels[slot] for labels, slot in rows if labels and slot is not None)
    summary = Summary()
    for label in sorted(shown)[:MOST_SLOT_METRICS]:
        if label.isalnum():  # MLflow refuses names with other signs
            summary.rate(f"pick_rate_label_{label}", picked[label], shown[label], "rows")
    return summary


def _come_apart(pages: Iterable[Sequence[str]]) -> bool:
    slots: dict[str, int] = {}
    return any(
        slots.setdefault(label, slot) != slot
        for labels in set(map(tuple, pages))
        for slot, label in enumerate(labels)
    )


def without_places(summary: Summary, grades: Iterable[Grade]) -> Summary:
    """The numbers, with a plain reason for those of places where no option was shown.

    Example:
        >>> without_places(Summary({"accuracy": 1.0}), []).values
        {'accuracy': 1.0}
    """
    grades = list(grades)
    if not grades or not all(grade.generation.prompt.unseen for grade in grades):
        return summary
    hidden = [n for n in (*summary.values, *summary.undefined) if n.startswith(_OF_PLACES)]
    values = {name: value for name, value in summary.values.items() if name not in hidden}
    return Summary(values, {**summary.undefined, **dict.fromkeys(hidden, _NOTHING_SHOWN)})


def slot_names(prompts: Iterable[Prompt], n_slots: int) -> tuple[str, ...]:
    """How tables and figures call the slots: by label, where a label is a slot's alone.

    A, B, C where no labels were shown; ``slot 1`` where a slot's label changes from row to
    row, or is in an alphabet that a figure's font may lack.

    Example:
        >>> slot_names([], 3)
        ('A', 'B', 'C')
    """
    by_slot: list[set[str]] = [set() for _ in range(n_slots)]
    for labels in {prompt.labels for prompt in prompts}:
        for slot, label in enumerate(labels[:n_slots]):
            by_slot[slot].add(label)
    if not any(by_slot):
        return letters_for(n_slots)
    own = tuple(next(iter(names)) if len(names) == 1 else "" for names in by_slot)
    plain = all(label and label.isascii() for label in own)
    return own if plain else tuple(f"slot {n}" for n in range(1, n_slots + 1))
