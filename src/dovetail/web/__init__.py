"""The dashboard: what people leave open in a browser. It asks the API and knows nothing else."""
