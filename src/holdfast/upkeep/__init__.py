"""What keeps the cluster in order, in the background of the workers: promote, reap, expire; prune, sweep, fold."""
