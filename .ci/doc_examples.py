"""Let the site show docstring examples as code.

The docstrings say ``Example:``, as Google's guide has it; the parser of the site knows
``Examples:`` only, and takes the other for a remark in Markdown, where ``>>>`` is a quotation.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEAD = re.compile(r"^Example:$", re.MULTILINE)


class Examples(griffe.Extension):
    """Renames the section as a docstring is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename it in one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = _HEAD.sub("Examples:", obj.docstring.value)
