"""What of a judge may be shown: its settings without credentials, safe to log."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from mlflow_mcq.judge_settings import JudgeSettings

__all__ = ["shown_judge", "shown_url"]


def shown_url(url: str | None) -> str:
    """A URL without credentials, query or fragment: safe to log.

    Example:
        >>> shown_url("https://user:pw@host:8000/v1?key=abc")
        'https://host:8000/v1'
    """
    if not url or "//" not in url:  # "local", or a host without its scheme
        return re.split(r"[?#]", url or "")[0].rpartition("@")[2]
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - a password with "/" or "#" in it ends up as the port
    except ValueError:
        return "(a URL that cannot be read)"
    # A password with a "/" in it reaches into the path: all up to the last "@" goes.
    return f"{parts.scheme}://{(parts.netloc + parts.path).rpartition('@')[2]}"


def shown_judge(judge: JudgeSettings) -> dict[str, Any]:
    """The settings of a judge and of its panel, without credentials: safe to log.

    Example:
        >>> judge = JudgeSettings(model="m", base_url="https://user:pw@host/v1")
        >>> shown_judge(judge)["base_url"]
        'https://host/v1'
    """
    return judge.model_dump(mode="json", exclude={"panel"}) | {
        "base_url": shown_url(judge.base_url),
        "query": {k: v if k == "api-version" else "(hidden)" for k, v in judge.query.items()},
        "panel": [shown_judge(member) for member in judge.panel],
    }
