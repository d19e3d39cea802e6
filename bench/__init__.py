"""Measurements against a hand-written loop and a peer, alternating in the same minutes; never part of the tests."""
