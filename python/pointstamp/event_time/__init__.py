"""The units of event times."""
