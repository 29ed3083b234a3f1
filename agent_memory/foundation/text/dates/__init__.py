"""Recognize unambiguous dates in English, Chinese, German, Spanish and French."""
