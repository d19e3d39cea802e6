"""What runs in a process while jobs run: fetcher, executor, settler, heartbeat; and the worker that joins them."""
