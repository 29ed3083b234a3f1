"""Read dates in English, Chinese, German, Spanish and French texts, where their meaning is certain."""
