"""A judge that finds most replies of the exam by their text."""

from __future__ import annotations

from typing import Any

from fake_server import Script

from mlflow_mcq.graders.exam import load_exam

__all__ = ["fair_judge"]


def fair_judge() -> Script:
    """Its answers, for a scripted server."""
    longest = sorted(load_exam(), key=lambda reply: -len(reply.reply))
    slots = {one.reply.strip(): one.slot for one in longest if one.reply.strip()}

    def fair(request: dict[str, Any], n: int) -> str:
        said = request["messages"][-1]["content"].split("The candidate's reply:")[1]
        slot = next((slot for reply, slot in slots.items() if reply in said), 0)
        return "OTHER" if slot is None else "ABCDEFGH"[slot]

    return fair
