"""Context compaction for LLM conversations: every message kept, the view computed."""

__all__ = ["__version__"]

__version__ = "0.1.0"
