"""The kill campaign: real processes share one SQLite file while a nemesis kills, stops and drains them.

`python -m tests.campaign --jobs 20000 --seed 7` runs it; the history checker judges what is left. What each process
does is in `producer` and `worker`, what is done to them in `nemesis`; the promises themselves are in `tests.history`.
"""
