"""Evaluate recall and prompts with public data sets, on any server that has our API."""
