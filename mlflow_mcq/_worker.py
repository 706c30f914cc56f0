"""A resident worker: ``python -m mlflow_mcq._worker``, started by `mlflow_mcq.engines.pool`.

It reads pickled messages of the process that started it, and of nobody else, until their
end. It never imports that process's script.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.records import Prompt

__all__ = ["main"]


def main() -> None:
    """Load what is asked for, answer what is asked, until the input ends."""
    # What libraries print would break the answers apart: only we write to the real output.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Ctrl-C reaches all processes of a terminal; who started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from mlflow_mcq.engines.sharing import weights_shared

    with weights_shared():
        try:
            while True:
                _answer(pickle.load(sys.stdin.buffer), answers)
        except (EOFError, BrokenPipeError):
            return


def _answer(message: tuple[Any, ...], answers: BinaryIO) -> None:
    kind, call, settings, batch_size, *rest = message
    try:
        if kind == "open":
            _say(answers, "opened", call, _told(settings, batch_size))
            return
        from mlflow_mcq.engines.sharing import loaded

        chat: Any = loaded(settings, batch_size)
        for answer in _scores(chat, *rest) if kind == "score" else chat.ask(*rest):
            _say(answers, "reply", call, answer)
        _say(answers, "done", call, str(getattr(chat, "road", None) or ""))
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001  whatever it is, the caller must hear of it
        from mlflow_mcq.engines.pool import shown_error

        _say(answers, "failed", call, shown_error(error))


def _scores(chat: Any, prompts: Sequence[Prompt], thinking: bool | None) -> Iterable[Any]:
    from mlflow_mcq.engines.label_scores import LabelScorer

    return enumerate(LabelScorer(chat, thinking).score(prompts))


def _told(settings: LocalSettings, batch_size: int) -> dict[str, Any]:
    from mlflow_mcq.engines.described import described
    from mlflow_mcq.engines.sharing import loaded

    chat: Any = loaded(settings, batch_size)
    return {
        "fingerprint": chat.fingerprint,
        "origin": chat.origin,
        "speaks_chat": chat.speaks_chat,
        "control_tokens": chat.control_tokens,
        "described": described(chat),
        "tokenizer": pickle.dumps(chat.tokenizer),
    }


def _say(answers: BinaryIO, kind: str, call: int, said: object) -> None:
    pickle.dump((kind, call, said), answers)
    answers.flush()


if __name__ == "__main__":
    main()
