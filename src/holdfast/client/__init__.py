"""What a producer or an operator does with jobs, split by noun: enqueue, jobs, queues, dead letters, workers."""
