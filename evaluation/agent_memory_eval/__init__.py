"""Evaluate recall and prompts on public data sets, using any server that implements our API."""
