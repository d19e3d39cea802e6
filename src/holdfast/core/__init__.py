"""The job as pure values and decisions: no await, no I/O, no clock, no third party."""
