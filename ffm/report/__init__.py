"""Views of the results; `formats` and `terminal` lay them out."""
