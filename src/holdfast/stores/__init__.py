"""Where jobs are kept. `base` is the contract; each sub-package is one dialect of it."""
