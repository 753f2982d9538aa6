"""The nouns of the field. This package knows no policy, no clock, no file and no library."""
