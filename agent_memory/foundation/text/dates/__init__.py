"""Read dates in texts where they are certain: English, Chinese, German, Spanish and French."""
