"""How it looks and asks: shell, state, inputs, words, pictures and the sheet."""
