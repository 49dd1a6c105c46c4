"""Ids of replies: made here, because endpoints' own ids repeat with some servers."""

from __future__ import annotations

import uuid


def new_reply_id() -> str:
    """Return an id that no other message has."""
    return f"msg_{uuid.uuid4().hex}"
