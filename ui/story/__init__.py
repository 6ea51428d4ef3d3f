"""Reports in words: the sentence, the three or four numbers, the rows and the alt texts that pages show."""
