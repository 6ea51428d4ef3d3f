"""What the visitor reads: one script a page, ask → compute → show."""
