"""Brings the workers and processes of one computation together."""
