"""Read dates in English, Chinese, German, Spanish and French texts if the meaning of the dates is certain."""
