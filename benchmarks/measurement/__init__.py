"""How it is measured: figures of processes and requests, in series and rounds."""
