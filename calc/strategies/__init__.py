"""Every strategy as a switch on the user's own scenario: what it changes, when it helps, what it costs."""
