"""One conversation of an agent: its log, its compactor, the branch in use, pins, breakers, prompt and reminders."""

from turnfold.session.session import Session

__all__ = ["Session"]
