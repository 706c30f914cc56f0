"""Protocols: how an item in one orientation is put on paper."""

from mlflow_mcq.protocols.families import PROTOCOLS, PROTOCOLS_FOR_ALL, prompt_family, reads_of
from mlflow_mcq.protocols.few_shot import few_shot
from mlflow_mcq.protocols.labels import LABEL_STYLES, check_labels, labels_for
from mlflow_mcq.protocols.nota import NOTA_TEXTS
from mlflow_mcq.protocols.page import Page, named_list, one_line_label, option_lines
from mlflow_mcq.protocols.protocol import Protocol, Shot, Shots
from mlflow_mcq.protocols.style import Style
from mlflow_mcq.protocols.wordings import WORDINGS, Wording
from mlflow_mcq.protocols.wordings_all import WORDINGS_ALL, WordingAll

__all__ = [
    "LABEL_STYLES",
    "NOTA_TEXTS",
    "PROTOCOLS",
    "PROTOCOLS_FOR_ALL",
    "WORDINGS",
    "WORDINGS_ALL",
    "Page",
    "Protocol",
    "Shot",
    "Shots",
    "Style",
    "Wording",
    "WordingAll",
    "check_labels",
    "few_shot",
    "labels_for",
    "named_list",
    "one_line_label",
    "option_lines",
    "prompt_family",
    "reads_of",
]
