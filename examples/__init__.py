"""Small programs that show Holdfast at work; each ends by itself, and each is run by a test."""
