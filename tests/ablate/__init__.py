"""Takes each safeguard out, in a scratch copy, and shows that a test notices; `make ablate` writes the table."""
