"""What turnfold costs, measured as ratios on whatever machine runs them: `make bench`."""
