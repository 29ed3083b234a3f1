"""Dates that texts name, read where they are certain: English, Chinese, German, Spanish and French, by one table each."""
