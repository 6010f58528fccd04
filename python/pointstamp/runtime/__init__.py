"""Workers and what runs them: threads, processes, sessions."""
