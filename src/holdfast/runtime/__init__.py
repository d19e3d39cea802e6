"""Asyncio plumbing that has never heard of a job: services, clocks, group commit, failpoints, threads."""
