"""turnfold beside other libraries: each module is the seam of one, and needs that one's extra."""
