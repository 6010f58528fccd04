"""How the workers and processes of one computation find each other."""
