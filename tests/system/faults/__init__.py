"""The fault harness: real processes under load are killed, stopped and disconnected, while a checker reads Redis alone."""
