"""What to change in a program, in words, and what correcting it while it runs achieved."""
