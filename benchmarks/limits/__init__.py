"""The limits beside which operations are measured."""
