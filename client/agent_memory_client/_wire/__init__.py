"""Requests and answers as they cross the network: built, repeated and read without sending anything."""
