"""The fault harness: the real processes under load while they are killed, stopped and cut off, and a checker that reads Redis alone."""
