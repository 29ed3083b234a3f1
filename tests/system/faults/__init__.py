"""The fault harness: real processes under load are killed, stopped and disconnected; a checker reads Redis alone."""
