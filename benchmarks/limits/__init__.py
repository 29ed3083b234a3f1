"""Measure the lowest possible cost of each operation for comparison."""
