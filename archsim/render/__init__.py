"""Answers as people and programs read them: five kinds of block, and what writes them as text, pages, pictures and tables."""
