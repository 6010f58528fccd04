"""Workers and their runtimes: threads, processes, sessions."""
