"""Holdfast: background work that is never lost, never silently run twice, and always visible."""
