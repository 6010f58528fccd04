"""What several examples use."""
