"""A supervisor with worker processes under it: their memory of what they do, the line between them, and who watches."""
