"""Reading text without a model: scripts, sentences and terms, the same for English and Chinese."""
