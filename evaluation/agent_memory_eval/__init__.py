"""Evaluate recall and prompts: public data sets, metrics, a run against any server with our API, and its report."""
