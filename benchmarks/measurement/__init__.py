"""Measure processes and requests in series and rounds."""
