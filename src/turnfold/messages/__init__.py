"""Messages: their values (`model`), what they mean and how a history is named (`canonical`)."""
