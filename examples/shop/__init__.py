"""A small shop and the tests of its background work: how a program of your own tests its tasks."""
