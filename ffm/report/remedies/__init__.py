"""What to change in a program, in words, and what corrections of the running one achieved."""
