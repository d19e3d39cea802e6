"""Deterministic simulation: the real worker and client on virtual time, against the model of the store, under faults.

One seed is one small world: processes with threads, clocks and wires of their own, on one machine that decides by the
seed what happens next (`world`). `python -m tests.simulation --seed 7` replays one and prints what happened in it.
See docs/simulation.md.
"""
