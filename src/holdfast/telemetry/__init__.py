"""What happened, as typed events: code emits them, subscribers make logs, metrics and traces of them."""
