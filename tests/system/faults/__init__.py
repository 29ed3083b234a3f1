"""Fault harness that kills, stops and disconnects processes under load, then checks Redis."""
