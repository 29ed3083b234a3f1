"""Report a run's figures as tables, plots, goals and verdicts."""
