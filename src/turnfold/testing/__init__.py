"""What turnfold ships for tests: contract suites for its ports, fakes that fail on purpose, Hypothesis strategies."""
