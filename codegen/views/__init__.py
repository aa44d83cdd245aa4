"""One module per target: every decision of the target is taken here; templates only set the text."""
