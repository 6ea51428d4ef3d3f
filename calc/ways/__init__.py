"""What to change so that a deployment fits, and the command that starts it."""
