"""The test suite. See "Tests" in docs/ARCHITECTURE.md for what each folder promises."""
