"""What keeps the cluster in order, in the background of every worker: promote, reap, expire, prune, sweep."""
