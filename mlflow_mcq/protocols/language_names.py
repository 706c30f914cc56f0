"""What people call the languages: a name that was typed in full is met with its code."""

from __future__ import annotations

__all__ = ["code_of"]

_NAMES = {
    "en": ("english",),
    "zh": ("chinese", "mandarin", "中文", "汉语", "漢語", "zhongwen"),
    "es": ("spanish", "español", "espanol", "castellano"),
    "de": ("german", "deutsch"),
    "fr": ("french", "français", "francais"),
    "ja": ("japanese", "日本語", "nihongo"),
    "ko": ("korean", "한국어", "hangugeo"),
    "ar": ("arabic", "العربية"),
    "hi": ("hindi", "हिन्दी", "हिंदी"),
    "pt": ("portuguese", "português", "portugues"),
    "ru": ("russian", "русский"),
    "vi": ("vietnamese", "tiếng việt"),
}


def code_of(name: str) -> str | None:
    """The code of a language by its name in English or in its own tongue, or of a region of it.

    Example:
        >>> code_of("German"), code_of("日本語"), code_of("pt-BR"), code_of("gramen")
        ('de', 'ja', 'pt', None)
    """
    folded = name.strip().casefold()
    region = folded.replace("_", "-").partition("-")[0]
    return next((code for code, names in _NAMES.items() if folded in names or region == code), None)
