"""Reasons: why something was decided, as data that a program can match and a person can read."""

from __future__ import annotations

import msgspec


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """`code` is a stable word (documented in docs/reasons.md), `detail` a sentence with the facts."""

    code: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code
