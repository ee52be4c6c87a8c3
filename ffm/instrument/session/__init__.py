"""One instrumented run: starting the program, the gate, attaching, and the end."""
