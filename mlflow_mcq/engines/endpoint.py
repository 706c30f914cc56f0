"""A chat endpoint of MLflow's AI gateway: ``endpoints:/name`` at the deployments target."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

from mlflow_mcq.engines.http_client import HttpClient
from mlflow_mcq.engines.openai_chat import OpenAIChat, request_options
from mlflow_mcq.errors import SettingsError
from mlflow_mcq.records import Decoding, Message, Query
from mlflow_mcq.said import as_dicts

__all__ = ["EndpointChat", "at_gateway"]

_SCHEME = "endpoints:/"
_HTTP = ("http://", "https://")
_TOKEN = "MLFLOW_TRACKING_TOKEN"


class EndpointChat(OpenAIChat):
    """Asks the gateway as MLflow's own deployments client does, but many calls at a time.

    Pacing, retries and the words of errors are those of `OpenAIChat`. Credentials are those
    that MLflow itself uses (``MLFLOW_TRACKING_TOKEN``, or user and password), unless a key is
    named.

    Args:
        uri: ``endpoints:/name``.
        target: Address of the gateway; None takes `mlflow.deployments.get_deployments_target`.
        api_key_env: Name of the environment variable with the key.
        concurrency: Most calls in flight.
        timeout_s: Seconds of one try.
        max_retries: Further tries of a call whose fault may pass.

    Raises:
        SettingsError: No target is set, or it is no HTTP address.
    """

    named_by = "the endpoint's name, MLflow's deployments target and its credentials"

    def __init__(
        self,
        uri: str,
        target: str | None = None,
        api_key_env: str | None = None,
        concurrency: int = 16,
        timeout_s: float = 60,
        max_retries: int = 5,
    ) -> None:
        name = uri.removeprefix(_SCHEME).strip("/")
        if not name:
            raise SettingsError("model", "names no endpoint", uri, "Use endpoints:/name.")
        url, token = _signed(target or _target(), api_key_env is None)
        key = api_key_env or (_TOKEN if token else None)
        super().__init__(name, url, key, concurrency, timeout_s, max_retries)
        self._path = f"gateway/{quote(name, safe='')}/invocations"

    async def _create(
        self, client: HttpClient, query: Query, decoding: Decoding, more: dict[str, Any]
    ) -> dict[str, Any]:
        said = query.content
        messages = (Message("user", said),) if isinstance(said, str) else said
        # No model: the gateway knows which one it is, and refuses to be told.
        body = {
            "messages": as_dicts(messages),
            **request_options(decoding, query.seed),
            **more,
        }
        return await client.post(self._path, body)


def at_gateway() -> bool:
    """Whether MLflow's deployments target is a gateway with an HTTP address."""
    return _told().startswith(_HTTP)


def _told() -> str:
    from mlflow.deployments import get_deployments_target
    from mlflow.exceptions import MlflowException

    try:
        return str(get_deployments_target())
    except MlflowException:  # it was told none
        return ""


def _target() -> str:
    found = _told()
    if not found:
        raise SettingsError(
            "model",
            "is an endpoint of MLflow's gateway, and MLflow was not told where that is",
            possible="Call mlflow.deployments.set_deployments_target(url), set "
            "MLFLOW_DEPLOYMENTS_TARGET, or give base_url for a judge.",
        )
    if not found.startswith(_HTTP):
        raise SettingsError(
            "model",
            "can be asked at a gateway with an HTTP address, and the deployments target is none",
            found,
            "Serving endpoints of Databricks speak OpenAI: base_url "
            "https://<workspace>/serving-endpoints, with the endpoint's name as the model.",
        )
    return found


def _signed(target: str, as_mlflow: bool) -> tuple[str, bool]:
    """The target with MLflow's user and password in it, and whether there is a token."""
    from mlflow.utils.credentials import get_default_host_creds

    if not as_mlflow or "@" in urlsplit(target).netloc:
        return target, False
    known = get_default_host_creds(target)
    if known.username and known.password:
        parts = urlsplit(target)
        user = f"{quote(known.username, safe='')}:{quote(known.password, safe='')}"
        return parts._replace(netloc=f"{user}@{parts.netloc}").geturl(), False
    return target, bool(known.token)
