"""A model in an in-process vLLM, for those who have it installed.

Prompts go in as the token ids that the transformers engine would send; seeds, stop texts and
the end of an answer mean the same. Its kernels are not ours: in half precision near ties fall
as they fall, and two versions of vLLM need not agree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mlflow_mcq.engines.decoding import eos_ids
from mlflow_mcq.engines.demo import resolve_weights
from mlflow_mcq.engines.encoding import encode
from mlflow_mcq.engines.tokenizer import control_tokens
from mlflow_mcq.engines.weights import text_config, weights_origin
from mlflow_mcq.errors import ModelError
from mlflow_mcq.local_settings import LocalSettings
from mlflow_mcq.records import Conversation, Decoding, Query, Reply

__all__ = ["VllmChat"]

_TOGETHER = 1024
"""Rows handed over at a time: vLLM batches by itself, and these are kept as they come."""

_LISTED = 20
"""Tokens that vLLM lists where nobody has raised its ``max_logprobs``."""


class VllmChat:
    """A causal language model that vLLM runs in this process.

    Args:
        settings: What is loaded and how.

    Attributes:
        fingerprint: Twelve hex digits over where the weights were read, their state, how they
            are run, and the chat template; vLLM lets nobody see the weights themselves.
        deterministic: Each row has a seed of its own.
        speaks_chat: The tokenizer has a chat template.
        control_tokens: Texts that must not reach it from data.
        origin: As in `mlflow_mcq.engines.local.LocalChat`.
        settings: As given.
        described: What is to be said of it, as params.
        tokenizer: Of the model.

    Raises:
        ModelError: The package vllm is not there, or the model cannot be loaded by it.
    """

    deterministic: bool = True

    def __init__(self, settings: LocalSettings) -> None:
        try:
            import vllm
        except ImportError:
            raise ModelError(
                "model.engine", "needs the package vllm", settings.engine,
                'Run: pip install "mlflow-mcq[vllm]"',
            ) from None  # fmt: skip
        from transformers import AutoConfig, AutoTokenizer, GenerationConfig

        self.settings = settings
        folder = resolve_weights(settings.path)
        named = {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, **named)
            config = AutoConfig.from_pretrained(folder, **named)
            self._llm: Any = vllm.LLM(**_arguments(folder, settings, config))
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            raise ModelError(f"model {settings.path!r}", f"cannot be loaded: {error}") from error
        try:
            generation = GenerationConfig.from_pretrained(folder, revision=settings.revision)
        except OSError:
            generation = None  # many checkpoints have none
        self._eos = eos_ids(_Holder(generation), self.tokenizer)
        self._vllm, self._lora = vllm, _lora(settings)
        loaded = self._llm.llm_engine.model_config
        self._longest: int = loaded.max_model_len
        dtype = str(loaded.dtype).removeprefix("torch.")
        template = getattr(self.tokenizer, "chat_template", None)
        self.speaks_chat: bool = bool(template)
        self.control_tokens: tuple[str, ...] = control_tokens(self.tokenizer)
        self.origin: str = weights_origin(
            folder,
            _Holder(None, config),
            adapter=settings.adapter or "",
            # What vLLM settled on, too: one name of a dtype is not the same on each device.
            changes=f"{settings.base.changes} {dtype}",
        )
        name = json.dumps(["vllm", self.origin, template], default=str)
        self.fingerprint: str = hashlib.sha256(name.encode()).hexdigest()[:12]
        told = settings.model_dump(exclude={"path"}, exclude_defaults=True) | {"dtype": dtype}
        self.described: dict[str, object] = {f"mcq.model_{k}": v for k, v in told.items()}
        self.described["mcq.model_vllm"] = str(getattr(vllm, "__version__", "unknown"))

    def ask(self, queries: Sequence[Query], decoding: Decoding) -> Iterator[tuple[int, Reply]]:
        """Answer rows in their order, a thousand at a time.

        Raises:
            ModelError: Chat messages for a tokenizer that has no chat template.
        """
        waiting: list[tuple[int, str, list[int], int]] = []
        for place, query in enumerate(queries):
            sent, ids, error = encode(self.tokenizer, query.content, decoding.thinking)
            if error:
                yield place, Reply(None, error)
            elif len(ids) + decoding.max_new_tokens > self._longest:
                # Never cut: a prompt without its head is another question.
                reply = Reply(
                    "", finish_reason="prompt_too_long", n_prompt_tokens=len(ids), sent=sent
                )
                yield place, reply
            else:
                waiting.append((place, sent, ids, query.seed))
        for start in range(0, len(waiting), _TOGETHER):
            rows = waiting[start : start + _TOGETHER]
            outputs = self._llm.generate(
                [{"prompt_token_ids": ids} for _, _, ids, _ in rows],
                sampling_params=[self._drawn(decoding, seed) for *_, seed in rows],
                lora_request=self._lora,
                use_tqdm=False,
            )
            for (place, sent, ids, _), output in zip(rows, outputs, strict=True):
                yield place, self._reply(sent, ids, output.outputs[0])

    def likeliest(
        self, contents: Sequence[Conversation], thinking: bool | None
    ) -> list[list[tuple[str, float]] | str]:
        """The likeliest next tokens after each prompt, as the vocabulary spells them.

        Args:
            contents: Prompts.
            thinking: As in the decoding of answers.

        Returns:
            For each prompt tokens with their natural log-probabilities, or why there are none.

        Raises:
            ModelError: Chat messages for a tokenizer that has no chat template.
        """
        found: list[list[tuple[str, float]] | str] = []
        asked: list[tuple[int, list[int]]] = []
        for content in contents:
            _, ids, error = encode(self.tokenizer, content, thinking)
            if not error and len(ids) + 1 > self._longest:
                error = "prompt_too_long"  # never cut
            if not error:
                asked.append((len(found), ids))
            found.append(error)
        drawn = self._vllm.SamplingParams(temperature=0.0, max_tokens=1, logprobs=_LISTED)
        outputs = self._llm.generate(
            [{"prompt_token_ids": ids} for _, ids in asked],
            sampling_params=[drawn] * len(asked),
            lora_request=self._lora,
            use_tqdm=False,
        )
        spell = self.tokenizer.convert_ids_to_tokens
        for (place, _), output in zip(asked, outputs, strict=True):
            steps = output.outputs[0].logprobs
            listed = steps[0] if steps else {}
            found[place] = [(str(spell(token)), one.logprob) for token, one in listed.items()]
        return found

    def _drawn(self, decoding: Decoding, seed: int) -> Any:
        sampled = decoding.temperature > 0
        return self._vllm.SamplingParams(
            temperature=decoding.temperature,
            top_p=decoding.top_p if sampled else 1.0,
            # 0 and -1 both keep all, and not every version takes 0.
            top_k=decoding.top_k if sampled and decoding.top_k else -1,
            seed=seed if sampled else None,
            max_tokens=decoding.max_new_tokens,
            stop=list(decoding.stop) or None,
            stop_token_ids=list(self._eos),
            # As the other engine keeps a row: up to and including the stop text.
            include_stop_str_in_output=True,
            # Otherwise a stop text that is a special token would never be seen.
            skip_special_tokens=False,
        )

    def _reply(self, sent: str, ids: list[int], output: Any) -> Reply:
        if output.finish_reason not in ("stop", "length"):
            # A part of an answer, which must not be graded as one.
            return Reply(None, f"vllm ended the row: {output.finish_reason}", sent=sent)
        new = list(output.token_ids)
        cut = next((place for place, token in enumerate(new) if token in self._eos), None)
        kept = tuple(new[:cut])
        ended = "stop" if isinstance(output.stop_reason, str) else "length"
        return Reply(
            text=self.tokenizer.decode(list(kept), skip_special_tokens=True),
            finish_reason="eos" if cut is not None else ended,
            token_ids=kept,
            n_prompt_tokens=len(ids),
            n_tokens=len(kept),
            sent=sent,
        )


class _Holder:
    """What is read of a model that vLLM keeps to itself."""

    def __init__(self, generation_config: Any, config: Any = None) -> None:
        self.generation_config, self.config = generation_config, config


def _arguments(folder: str, settings: LocalSettings, config: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "model": folder,
        "dtype": _dtype(settings.dtype, config),
        "revision": settings.revision,
        "trust_remote_code": settings.trust_remote_code,
        # Sampling values and penalties stored in the checkpoint are not inherited.
        "generation_config": "vllm",
        "enable_prefix_caching": True,
    }
    if settings.quantization is not None:
        given["quantization"] = "bitsandbytes"
    if settings.adapter is not None:
        given |= {"enable_lora": True, "max_lora_rank": _rank(settings.adapter)}
    return given


def _dtype(wanted: str | None, config: Any) -> str:
    """The dtype as vLLM is to be told it, so that it means what it means for the other engine."""
    from vllm.platforms import current_platform

    if wanted is None and current_platform.is_cpu():
        return "float32"
    text = text_config(_Holder(None, config))
    stored = getattr(text, "dtype", None) or getattr(text, "torch_dtype", None)
    # By "auto" vLLM would halve a float32 checkpoint, and say so nowhere but in its log.
    kept = "float32" if str(stored).endswith("float32") else "auto"
    return kept if wanted in (None, "auto") else wanted


def _lora(settings: LocalSettings) -> Any:
    if settings.adapter is None:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, settings.adapter)


def _rank(adapter: str) -> int:
    """The room for an adapter: vLLM takes 8, 16, 32 and so on, and refuses a 4 or a 12."""
    try:
        given = json.loads((Path(adapter) / "adapter_config.json").read_text(encoding="utf-8"))
        ranks = [int(given["r"]), *map(int, (given.get("rank_pattern") or {}).values())]
        return max(8, 1 << (max(ranks) - 1).bit_length())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            "model.adapter", "must be a folder with a LoRA adapter, for vllm", adapter
        ) from error
