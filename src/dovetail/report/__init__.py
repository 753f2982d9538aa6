"""Results for people: words, the measures worth comparing, plots and one HTML page."""
