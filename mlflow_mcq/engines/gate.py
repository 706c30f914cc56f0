"""Which models may take the fast road, as far as their configuration says.

The fast road replaces a model's attention. Where that attention does more than weigh all
earlier tokens (a window, a soft cap, sinks, a bias by distance), or where the state is no
list of keys and values, the answers would be wrong without an error. What no
configuration says is found by the self-check, which compares with plain `generate` (over at
most 160 tokens of a shared beginning), or by the attention itself, which refuses a window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlflow_mcq.engines.compiled import is_compiled
from mlflow_mcq.engines.weights import forward_names, text_config

__all__ = ["refusal", "sees_all_before"]


def refusal(model: Any, longest: int) -> str:
    """Why a model must not take the fast road; empty where nothing speaks against it.

    Args:
        model: Of transformers.
        longest: Most tokens of a row, prompt and answer together.

    Example:
        >>> class Encoder:
        ...     config = type("Config", (), {"is_encoder_decoder": True})()
        >>> refusal(Encoder(), 100)
        'an encoder reads the prompt'
    """
    text = text_config(model)
    if text is None:
        return "the model has no configuration"
    for found in (*(rule(text) for rule in _CONFIG_RULES), _rope(text, longest)):
        if found:
            return found
    return next((found for rule in _MODEL_RULES if (found := rule(model))), "")


def sees_all_before(model: Any) -> bool:
    """Whether each token of a model weighs all before it, as far as its configuration says.

    Where it does not, the keys and values of a beginning are not those that the model would
    have kept itself.
    """
    text = text_config(model)
    return not any(rule(text) for rule in (_window, _layers, _chunks))


def _encoder(config: Any) -> str:
    reads = getattr(config, "is_encoder_decoder", False)
    return "an encoder reads the prompt" if reads else ""


def _window(config: Any) -> str:
    window = getattr(config, "sliding_window", None)
    used = window is not None and getattr(config, "use_sliding_window", True)
    return f"attention has a sliding window of {window} tokens" if used else ""


def _layers(config: Any) -> str:
    kinds = set(getattr(config, "layer_types", None) or ())
    other = ", ".join(sorted(kinds - {"full_attention"}))
    return f"some layers are of kind {other}" if other else ""


def _chunks(config: Any) -> str:
    chunk = getattr(config, "attention_chunk_size", None)
    return f"attention is cut into chunks of {chunk} tokens" if chunk else ""


def _cap(config: Any) -> str:
    return "attention is soft-capped" if getattr(config, "attn_logit_softcapping", None) else ""


def _alibi(config: Any) -> str:
    biased = getattr(config, "alibi", False) or getattr(config, "position_bias", False)
    return "attention is biased by distance" if biased else ""


def _rope(config: Any, longest: int) -> str:
    """Rotary tables that change with the longest row of a batch tie rows to each other."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    rope = rope if isinstance(rope, dict) else {}
    kind = rope.get("rope_type", rope.get("type"))
    if kind not in ("dynamic", "longrope"):
        return ""
    name = "original_max_position_embeddings"
    limit: int = rope.get(name) or getattr(config, name, None) or config.max_position_embeddings
    return f"rotary positions of kind {kind} change beyond {limit} tokens" * (longest > limit)


def _interface(model: Any) -> str:
    able = getattr(model, "_can_set_attn_implementation", None)
    given = callable(able) and bool(able()) and hasattr(model, "set_attn_implementation")
    return "" if given else "its attention cannot be exchanged"


def _arguments(model: Any) -> str:
    names = forward_names(model)
    takes = "position_ids" in names and bool({"cache", "past_key_values"} & names)
    return "" if takes else "its forward pass takes no positions or no cache"


def _own_generate(model: Any) -> str:
    # Somebody put their own in: to go around it would change what they measure.
    own = "generate" in vars(model) or "forward" in vars(model)
    return "its generate or forward was replaced" if own else ""


def _compiled(model: Any) -> str:
    return "it is compiled, and each batch would compile it anew" * is_compiled(model)


def _spread(model: Any) -> str:
    if any(hasattr(module, "_hf_hook") for module in model.modules()):
        return "Accelerate moves its weights between devices"
    devices = {str(weight.device) for weight in model.parameters()}
    if devices & {"meta"}:
        return "some weights are not in memory"
    return f"its weights are on {len(devices)} devices" if len(devices) > 1 else ""


def _virtual_tokens(model: Any) -> str:
    config = getattr(model, "active_peft_config", None)
    virtual = bool(getattr(config, "is_prompt_learning", False))
    return "an adapter puts virtual tokens in front" if virtual else ""


_CONFIG_RULES: tuple[Callable[[Any], str], ...] = (
    _encoder,
    _window,
    _layers,
    _chunks,
    _cap,
    _alibi,
)
_MODEL_RULES: tuple[Callable[[Any], str], ...] = (
    _compiled, _own_generate, _virtual_tokens, _spread, _interface, _arguments,
)  # fmt: skip
