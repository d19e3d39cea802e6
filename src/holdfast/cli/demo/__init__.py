"""`holdfast demo`: jobs at work before one's eyes. The tasks themselves are an example, not part of this package."""
