"""Stores: where logs, checkpoints and state are kept. Import the one you use; nothing is loaded here."""
