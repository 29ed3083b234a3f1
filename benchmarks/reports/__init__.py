"""What a run's figures say: tables, plots, goals, verdicts."""
