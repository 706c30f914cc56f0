"""The README is run, not believed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pytest
from fake_server import FakeServer, Script

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_python_block_runs_in_order(
    judge_server: Callable[[Script], FakeServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = judge_server(lambda request, n: "OTHER")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("MLFLOW_MCQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)  # MLflow puts artifacts beside the caller
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    try:
        for block in blocks:
            code = block.replace("https://api.openai.com/v1", server.url)
            code = code.replace('"base_url": "..."', f'"base_url": "{server.url}"')
            exec(compile(code, "README.md", "exec"), names)
    finally:
        mlflow.set_tracking_uri(before)
    assert len(blocks) == 8
    # "The answer is A." is settled by the strict rule; the judge says OTHER to it.
    assert names["result"].metrics["judge/prefilter_rate"] == 1
    assert names["result"].metrics["judge/strict_agreement"] == 0
    assert names["answered"].metrics["regex_bounded/n_rows"] == 5
    assert names["curves"].every_n_steps == 50
    assert list(names["found"].headlines) == ["says B"]
    assert server.headers[0]["authorization"] == "Bearer sk-none"


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_stand_where_machines_find_them(name: str) -> None:
    (block,) = re.findall(rf"<!-- {name} -->\n```sh\n(.+)\n```\n<!-- end -->", README)
    assert "-c .ci/constraints.txt" in block
    assert (ROOT / ".ci/constraints.txt").is_file()


def test_settings_and_protocols_are_all_described() -> None:
    from mlflow_mcq.judge_settings import JudgeSettings
    from mlflow_mcq.prompt_settings import FewShotSettings
    from mlflow_mcq.protocols import PROTOCOLS
    from mlflow_mcq.reader_settings import (
        AnalogySettings,
        LogprobSettings,
        RegexSettings,
        SimilaritySettings,
    )
    from mlflow_mcq.settings import Columns, Settings

    readers = (FewShotSettings, AnalogySettings, LogprobSettings, RegexSettings, SimilaritySettings)
    for known in (Settings, JudgeSettings, Columns, *readers):
        for name in known.model_fields:
            assert f"`{name}`" in README, name
    for name in PROTOCOLS:
        assert f"`{name}`" in README, name
