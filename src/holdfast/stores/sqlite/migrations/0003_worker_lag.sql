-- How long a worker's event loop last took to answer, in seconds.
ALTER TABLE worker ADD COLUMN lag_s REAL NOT NULL DEFAULT 0;
