"""Summarizers: by a model, by extraction, by script."""
