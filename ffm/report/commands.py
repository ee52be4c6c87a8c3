"""The commands that screens name, so that they can be typed as they stand."""

from __future__ import annotations


def command(words: str, results: str = "") -> str:
    """`ffm sequence 1 --results FOLDER`; `results` is the option as the user gave it, or empty."""
    return f"ffm {words} {results}" if results else f"ffm {words}"
