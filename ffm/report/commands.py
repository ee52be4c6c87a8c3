"""The commands that screens print, ready to be copied."""

from __future__ import annotations


def command(words: str, results: str = "") -> str:
    """Return `ffm sequence 1 --results FOLDER`; `results` is the option as the user gave it, or empty."""
    return f"ffm {words} {results}" if results else f"ffm {words}"
