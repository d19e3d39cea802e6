"""How ready work is announced to workers and shared out among them; what is true of a job is in the store alone."""
