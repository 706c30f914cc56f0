"""The three solved analogies that stand before every item of ``analogy``.

Their gold stands in three different slots. A fourth steps in where one of them is the very
item that is asked.
"""

from __future__ import annotations

from mlflow_mcq.protocols.few_shot import same_question
from mlflow_mcq.protocols.protocol import Shot
from mlflow_mcq.records import Item, Orientation

__all__ = ["analogy_shots"]

_EXAMPLES = tuple(
    Item(f"analogy-example-{number}", question, options, gold)
    for number, (question, options, gold) in enumerate(
        (
            (
                "puppy : dog",
                ("nest : bird", "hoof : horse", "kitten : cat", "wool : sheep"),
                2,
            ),
            (
                "author : novel",
                ("composer : symphony", "reader : library", "actor : audience", "canvas : frame"),
                0,
            ),
            (
                "thermometer : temperature",
                ("oven : bread", "lamp : switch", "wheel : road", "scale : weight"),
                3,
            ),
            (
                "north : south",
                ("rain : cloud", "above : below", "river : sea", "island : water"),
                1,
            ),
        )
    )
)
_AS_IS = Orientation(0, "as-is", (0, 1, 2, 3))


def analogy_shots(item: Item) -> tuple[Shot, ...]:
    """Three examples that are not the item itself.

    Example:
        >>> asked = Item("x", "Puppy : dog", ("a : b", "c : d"), 0)
        >>> [shot.item.gold for shot in analogy_shots(asked)]
        [0, 3, 1]
    """
    others = [one for one in _EXAMPLES if not same_question(one.question, item.question)]
    return tuple(Shot(one, _AS_IS) for one in others[:3])
