-- What was said of being unique (holdfast/core/unique_text.py), kept with the job: a replay has to respect it, and by then
-- the key may be another's. NULL where nothing was said, and for jobs of before.
ALTER TABLE job ADD COLUMN unique_claim TEXT;
