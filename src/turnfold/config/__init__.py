"""Settings and scenarios: untrusted values in, frozen values out, or every problem at once."""
